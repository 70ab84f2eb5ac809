// Chats with a model whose attention is to latents, of which the pool has one copy: cold, from the prefix cache, preempted, from the disk
// tier, and with windows, in every type of the pool, an answer is the same bits.
#include "kernels/kv_type.h"
#include "sched/conversations/chats.h"
#include "support/folder.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <functional>

namespace braid::sched::test {
namespace {

using kernels::KvType;

constexpr std::int32_t kCrowdedBlocks = 40;

std::vector<std::vector<ChatTurn>> hold_with_disk(Chats& chats, bool write_through) {
  const braid::test::Folder folder;
  boost::asio::io_context loop;
  store::StoreOptions wanted;
  wanted.directory = folder.path();
  wanted.limit_bytes = 200'000'000;
  wanted.identity = "latents";
  wanted.payload_bytes = chats.model().kv_layout().block_bytes();
  wanted.most_tokens = 256;
  const auto store = store::BlockStore::open(wanted, store::make_io(), [&](std::function<void()> call) {
                       boost::asio::post(loop, std::move(call));
                     }).value();
  SchedulerOptions options = chats.options(true, kCrowdedBlocks);
  options.disk_always = true;
  options.write_through = write_through;
  const auto first = chats.hold(12, options, loop, store.get());
  loop.restart();
  {
    const auto is_awaited = boost::asio::make_work_guard(loop);
    while (!store->idle()) loop.run_one();  // until all has been written
  }
  loop.restart();
  auto second = chats.hold(12, options, loop, store.get());
  EXPECT_GT(chats.stats.cache_disk_hit_tokens, 0U);
  EXPECT_EQ(chats.stats.disk->read_errors, 0U);
  expect_same(first, second, "from disk");
  return second;
}

class LatentChats : public testing::TestWithParam<KvType> {
 protected:
  static model::LoadOptions load_options(std::int32_t kv_limit = 0) {
    model::LoadOptions load;
    load.kv_type = GetParam();
    load.kv_limit = kv_limit;
    return load;
  }
};

TEST_P(LatentChats, AreTheSameBitsColdWarmPreemptedAndFromDisk) {
  Chats chats("deepseek-v3", load_options());
  ASSERT_TRUE(chats.model().kv_layout().latent);
  const auto cold = chats.hold(12, chats.options(false, Chats::kMostBlocks));
  expect_same(cold, chats.hold(12, chats.options(true, Chats::kMostBlocks)), "warm");
  EXPECT_GT(chats.stats.cache_hit_tokens, 12U * 3 * 20);
  expect_same(cold, chats.hold(12, chats.options(true, kCrowdedBlocks)), "preempted");
  EXPECT_GT(chats.stats.preemptions, 0U);
  for (const bool write_through : {false, true}) expect_same(cold, hold_with_disk(chats, write_through), "from disk");
}

TEST_P(LatentChats, AreTheSameBitsWithAWindow) {
  Chats chats("deepseek-v3", load_options(40));
  const auto cold = chats.hold(12, chats.options(false, Chats::kMostBlocks));
  expect_same(cold, chats.hold(12, chats.options(true, Chats::kMostBlocks)), "warm");
  EXPECT_GT(chats.stats.cache_hit_tokens, 0U);
  expect_same(cold, chats.hold(12, chats.options(true, kCrowdedBlocks)), "in a crowd");
  Chats unlimited("deepseek-v3", load_options());
  EXPECT_NE(cold.back().back().logprobs, unlimited.hold(12, unlimited.options(false, Chats::kMostBlocks)).back().back().logprobs)
      << "the window hides something";
}

INSTANTIATE_TEST_SUITE_P(KvTypes, LatentChats, testing::Values(KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8),
                         [](const auto& suite) { return std::string(kernels::kv_type_name(suite.param)); });

}  // namespace
}  // namespace braid::sched::test
