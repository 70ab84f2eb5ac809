#include "model/kv_arena.h"

#include "kernels/select.h"
#include "model/kv_growth.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <span>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace braid::model::test {
namespace {

constexpr KvLayout kLayout{.layers = 3, .kv_heads = 2, .head_dim = 24, .block_tokens = 8, .type = kernels::KvType::kF16};

TEST(KvLayout, CountsWholeCacheLines) {
  EXPECT_EQ(kLayout.half_bytes(), 8U * 24 * 2);
  EXPECT_EQ(kLayout.block_bytes(), 3U * 2 * 2 * 8 * 24 * 2);
  const KvLayout odd{.layers = 1, .kv_heads = 1, .head_dim = 3, .block_tokens = 8, .type = kernels::KvType::kF32};
  EXPECT_EQ(odd.half_bytes(), 128U) << "96 bytes, rounded up";
}

TEST(KvLayout, Int8FitsAlmostTwiceTheSequencesOfF16) {
  for (const std::int32_t head_dim : {64, 80, 96, 128, 256}) {
    for (const std::int32_t block_tokens : {8, 16, 32, 64}) {
      KvLayout layout{.layers = 22, .kv_heads = 4, .head_dim = head_dim, .block_tokens = block_tokens, .type = kernels::KvType::kF16};
      const auto f16 = static_cast<double>(layout.block_bytes());
      layout.type = kernels::KvType::kInt8;
      EXPECT_GE(f16 / static_cast<double>(layout.block_bytes()), 1.9) << head_dim << " in blocks of " << block_tokens;
    }
  }
}

// DeepSeek's 576 values a token and layer, once.
TEST(KvLayout, LatentsAreStoredOnce) {
  for (const std::int32_t block_tokens : {8, 16, 32, 64}) {
    KvLayout layout{.layers = 27, .kv_heads = 1, .head_dim = 576, .block_tokens = block_tokens, .latent = true};
    for (const auto& [type, bytes] :
         {std::pair{kernels::KvType::kF32, 576U * 4}, {kernels::KvType::kF16, 576U * 2}, {kernels::KvType::kBF16, 576U * 2}}) {
      layout.type = type;
      EXPECT_EQ(layout.block_bytes(), 27U * static_cast<std::size_t>(block_tokens) * bytes);
    }
    layout.type = kernels::KvType::kInt8;  // a scale for 64 values, and for all layers whole halves of cache lines
    const std::size_t tokens = static_cast<std::size_t>(block_tokens);
    EXPECT_EQ(layout.block_bytes(), 27U * (tokens * 576 + (tokens * 9 * 2 + 31) / 32 * 32));
  }
}

// Of every byte: whether tokens write it, and whether the layout says so.
TEST(KvLayout, KnowsWhatIsPadding) {
  for (const KvLayout& layout :
       {KvLayout{.layers = 2, .kv_heads = 2, .head_dim = 24, .block_tokens = 8, .type = kernels::KvType::kF16},
        KvLayout{.layers = 2, .kv_heads = 1, .head_dim = 6, .block_tokens = 8, .type = kernels::KvType::kF16},
        KvLayout{.layers = 2, .kv_heads = 2, .head_dim = 6, .block_tokens = 8, .type = kernels::KvType::kBF16},
        KvLayout{.layers = 2, .kv_heads = 2, .head_dim = 12, .block_tokens = 8, .type = kernels::KvType::kInt8},
        KvLayout{.layers = 2, .kv_heads = 1, .head_dim = 28, .block_tokens = 8, .type = kernels::KvType::kInt8, .latent = true}}) {
    std::vector<bool> written(layout.block_bytes());
    for (const std::byte before : {std::byte{0x00}, std::byte{0xFF}}) {  // one of the two differs from what is written there
      const KvArena arena = KvArena::create(layout, 1).value();
      std::ranges::fill(arena.block(0), before);
      const std::vector<float> floats(static_cast<std::size_t>(layout.kv_heads * layout.head_dim), 0.37F);
      for (std::int32_t layer = 0; layer < layout.layers; ++layer)
        for (std::int32_t slot = 0; slot < layout.block_tokens; ++slot)
          kernels::best_kernel_table().kv_store(arena.layer(layer), 0, slot, floats.data(), floats.data());
      for (std::size_t i = 0; i < written.size(); ++i) written[i] = written[i] || arena.block(0)[i] != before;
    }
    std::vector<bool> said(layout.block_bytes());
    layout.for_written(
        [&](std::size_t at, std::size_t bytes) { std::fill_n(said.begin() + static_cast<std::ptrdiff_t>(at), bytes, true); });
    EXPECT_EQ(said, written) << layout.head_dim << " values of type " << static_cast<int>(layout.type);
  }
}

TEST(KvArena, HeadsOfAllLayersAndBlocksDoNotOverlap) {
  const KvArena arena = KvArena::create(kLayout, 4).value();
  std::set<std::uintptr_t> starts;
  for (std::int32_t l = 0; l < kLayout.layers; ++l) {
    const kernels::KvLayer layer = arena.layer(l);
    for (std::size_t block = 0; block < 4; ++block)
      for (std::size_t head = 0; head < 2; ++head)
        for (const std::size_t half : {std::size_t{0}, layer.value_offset})
          starts.insert(reinterpret_cast<std::uintptr_t>(layer.base + block * layer.block_stride + head * layer.head_stride + half));
  }
  ASSERT_EQ(starts.size(), 3U * 4 * 2 * 2);
  EXPECT_EQ(*starts.rbegin() - *starts.begin(), 4 * kLayout.block_bytes() - kLayout.half_bytes());
  for (auto next = std::next(starts.begin()), start = starts.begin(); next != starts.end(); ++next, ++start)
    EXPECT_EQ(*next - *start, kLayout.half_bytes());
}

TEST(KvArena, ABlockIsOneRunOfBytesOfAllLayers) {
  const KvArena arena = KvArena::create(kLayout, 4).value();
  const std::span<std::byte> bytes = arena.block(2);
  EXPECT_EQ(bytes.size(), kLayout.block_bytes());
  const kernels::KvLayer first = arena.layer(0);
  const kernels::KvLayer last = arena.layer(kLayout.layers - 1);
  EXPECT_EQ(bytes.data(), first.base + 2 * first.block_stride);
  EXPECT_EQ(bytes.data() + bytes.size(), last.base + 2 * last.block_stride + kLayout.layer_bytes());
}

TEST(KvArena, PrefaultReportsTheWholeAndKeepsZeros) {
  const KvArena arena = KvArena::create(kLayout, 100).value();
  kernels::ThreadTeam team(2);
  std::uint64_t done = 0;
  arena.prefault(team, [&](std::string_view, std::uint64_t now, std::uint64_t total) {
    done = now;
    EXPECT_EQ(total, 100 * kLayout.block_bytes());
  });
  EXPECT_EQ(done, 100 * kLayout.block_bytes());
  const std::span bytes(arena.layer(0).base, 100 * kLayout.block_bytes());
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(KvArena, MoreThanTheAddressSpaceIsAnError) {
  KvLayout layout = kLayout;
  layout.layers = 1 << 20;
  const auto arena = KvArena::create(layout, 1 << 30);
  ASSERT_FALSE(arena);
  EXPECT_NE(arena.error().message.find("KV cache"), std::string::npos) << arena.error().message;
}

// How many pages of the arena's first `bytes` there are.
std::size_t pages_present(const KvArena& arena, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present(bytes / page);
  EXPECT_EQ(::mincore(arena.block(0).data(), present.size() * page, present.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(present, [](unsigned char flags) { return (flags & 1U) != 0; }));
}

std::int32_t blocks_in(std::size_t bytes) { return static_cast<std::int32_t>(bytes / kLayout.block_bytes()); }

TEST(KvGrowth, MakesEveryPagePresent) {
  const KvArena arena = KvArena::create(kLayout, blocks_in(std::size_t{80} << 20)).value();
  KvGrowth growth(arena, arena.blocks());
  EXPECT_GE(growth.present(), std::size_t{64} << 20);
  growth.reach(arena.blocks());
  while (!growth.is_over()) std::this_thread::yield();  // what a large page leaves behind the last block
  EXPECT_EQ(pages_present(arena, arena.bytes()), arena.bytes() / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

TEST(KvGrowth, AStepReachesItsBlocks) {
  const KvArena arena = KvArena::create(kLayout, blocks_in(std::size_t{8} << 30), files::HugePages::kOff).value();
  const std::size_t wanted = std::size_t{96} << 20;
  {
    KvGrowth growth(arena, arena.blocks());
    growth.reach(blocks_in(wanted));
    EXPECT_GE(growth.present() + kLayout.block_bytes(), wanted);
    growth.reach(1);
  }
  EXPECT_EQ(pages_present(arena, wanted / 2), wanted / 2 / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

TEST(KvGrowth, ASmallArenaIsOverAtOnce) {
  const KvArena arena = KvArena::create(kLayout, 4).value();
  EXPECT_TRUE(KvGrowth(arena, 4).is_over());
}

// What may come to be used later has no pages before.
TEST(KvGrowth, LeavesOtherBlocksAlone) {
  const KvLayout layout{.layers = 8, .kv_heads = 8, .head_dim = 128, .block_tokens = 16, .type = kernels::KvType::kF16};  // 512 KiB a block
  const KvArena arena = KvArena::create(layout, 1024, files::HugePages::kOff).value();
  KvGrowth growth(arena, 200);
  growth.reach(1000);
  EXPECT_TRUE(growth.is_over());
  EXPECT_EQ(growth.wanted(), 200 * arena.block_bytes());
  EXPECT_EQ(arena.resident(), growth.wanted());
}

TEST(KvArena, GivesTheMemoryOfBlocksBack) {
  const KvLayout layout{.layers = 4, .kv_heads = 4, .head_dim = 64, .block_tokens = 16, .type = kernels::KvType::kF16};  // 64 KiB a block
  const KvArena arena = KvArena::create(layout, 64, files::HugePages::kOff).value();
  for (std::int32_t i = 0; i < 64; ++i) std::ranges::fill(arena.block(i), std::byte{7});
  const std::size_t full = arena.resident();
  EXPECT_EQ(full, arena.bytes());
  const std::vector<std::int32_t> given = {9, 3, 4, 5, 63};
  arena.give_back(given);
  EXPECT_EQ(arena.resident(), full - given.size() * arena.block_bytes());
  EXPECT_EQ(arena.block(4)[100], std::byte{0});
  EXPECT_EQ(arena.block(2)[100], std::byte{7});
  EXPECT_EQ(arena.block(6)[0], std::byte{7});
}

TEST(KvGrowth, StopsWhenMemoryIsGivenBack) {
  const KvLayout layout{.layers = 8, .kv_heads = 8, .head_dim = 128, .block_tokens = 16, .type = kernels::KvType::kF16};  // 512 KiB a block
  const KvArena arena = KvArena::create(layout, 1024, files::HugePages::kOff).value();
  KvGrowth growth(arena, arena.blocks());
  growth.stop();
  EXPECT_TRUE(growth.is_over());
  const std::size_t present = arena.resident();
  arena.give_back(std::vector<std::int32_t>{0, 1});
  growth.reach(1024);
  EXPECT_LE(arena.resident(), present);
}

}  // namespace
}  // namespace braid::model::test
