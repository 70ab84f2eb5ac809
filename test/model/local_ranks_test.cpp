// A model computed by ranks that are threads of one process, as on a machine with several memory nodes: the bits of one team.
#include "ranks/local_ranks.h"

#include "kernels/memory_nodes.h"
#include "kernels/select.h"
#include "kernels/thread_team.h"
#include "model/adapter_models.h"
#include "model/families/families.h"
#include "model/loaded_tensors.h"
#include "model/step_driver.h"
#include "ranks/rank_group.h"
#include "ranks/remote_passes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

namespace braid::model::test {
namespace {

constexpr std::int32_t kRankBlocks = 256;
constexpr std::int32_t kContext = 256;
constexpr const char* kModel = BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf";
constexpr std::uint32_t kTokensOfPlan = 2000;

// A machine of two nodes, whose processors are those that this test may use: the first one's and the last one's, which may be the same.
std::vector<std::vector<int>> two_nodes() {
  const braid::test::Folder root;
  const std::vector<int> cpus = kernels::allowed_cpus();
  for (const auto& [node, cpu] : {std::pair{0, cpus.front()}, std::pair{1, cpus.back()}}) {
    const std::string folder = root / fmt::format("sys/devices/system/node/node{}", node);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/cpulist") << cpu << "\n";
  }
  return kernels::memory_nodes(root.path());
}

std::vector<DrivenRequest> requests_of(std::uint32_t adapter) {
  std::mt19937 random(5);
  std::vector<DrivenRequest> requests(6);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.resize(1 + random() % 40);
    for (TokenId& id : requests[i].prompt) id = static_cast<TokenId>(5 + random() % kTokensOfPlan);
    requests[i].sampling = {.temperature = i % 2 == 0 ? 0.0F : 0.8F, .seed = 10 + i, .top_logprobs = 2};
    requests[i].stop = {.max_tokens = 8, .min_tokens = 0, .ignore_eos = true, .stop_token_ids = {}};
    requests[i].adapter = i % 3 == 0 ? 0 : adapter;
  }
  return requests;
}

LoadOptions options_of(std::shared_ptr<PassRunner> passes, std::int32_t ranks) {
  return {.threads = 1,
          .context_length = kContext,
          .kv_type = kernels::KvType::kF16,
          .packing = {.float_type = {}, .share = {.rank = 0, .ranks = ranks}},
          .max_batch = 8,
          .end_tokens = {2},
          .progress = {},
          .passes = std::move(passes)};
}

std::shared_ptr<ranks::RemotePasses> start_ranks(const std::string& path, std::int32_t count, std::int32_t vocab) {
  auto group = ranks::RankGroup::start({.ranks = count, .nodes = two_nodes()}).value();
  const LoadOptions load = options_of(nullptr, count);
  group
      ->set_up({.model = path,
                .kv_type = static_cast<std::int32_t>(kernels::KvType::kF16),
                .context = kContext,
                .pass_rows = load.pass_rows,
                .logit_rows = logit_rows_at_once(vocab, load.pass_rows),
                .threads = 2})
      .value();
  return std::make_shared<ranks::RemotePasses>(std::move(group), vocab);
}

// With an adapter whose magnitudes follow from the weights, which ranks have in parts, or one that brings weights whole.
std::vector<DrivenAnswer> answers_of(const std::shared_ptr<ranks::RemotePasses>& passes, std::int32_t ranks, bool whole) {
  const files::GgufFile file = files::GgufFile::open(kModel).value();
  const kernels::KernelTable& table = kernels::best_kernel_table();
  auto model = LanguageModel::load(file, table, options_of(passes, ranks)).value();
  model->allocate_kv(kRankBlocks).value();
  const adapting::RandomAdapter made{.seed = 3, .magnitudes = !whole, .whole = whole};
  AdapterSet::Part part;
  if (passes == nullptr) {
    part.adapter = made.build(*model, table);
  } else {
    part.adapter = made.build(*model, table, [&](Adapter& lengths) { return passes->measure(lengths, *model->first()->copies); });
    part.copies = passes->hand_out(*part.adapter).value();
  }
  model->adapters().set(1, std::make_shared<AdapterSet>(std::vector<AdapterSet::Part>{part}));
  return StepDriver(*model, kRankBlocks).run(requests_of(1), {.at_once = 4, .slice = 7});
}

TEST(LocalRanks, OnTwoMemoryNodesGiveTheBitsOfOneTeam) {
  ASSERT_EQ(two_nodes().size(), 2U);
  const std::int32_t vocab = describe_model(files::GgufFile::open(kModel).value())->vocab;
  for (const bool whole : {false, true}) {
    const auto alone = answers_of(nullptr, 1, whole);
    for (const std::int32_t count : {1, 2, 3, 4})
      expect_same(alone, answers_of(start_ranks(kModel, count, vocab), count, whole), fmt::format("{} ranks, {}", count, whole));
  }
}

// A folder of the hub, and other values for all of its tensors.
struct Replaced {
  explicit Replaced(const std::string& its_path) : path(its_path) {
    for (const auto& [name, tensor] : folder.tensors()) {
      adapting::Values values = adapting::values_of(tensor);
      for (float& value : values.at) value *= 2.0F;
      given.add(name, values);
    }
  }

  const std::string path;
  const files::HfFolder folder = files::HfFolder::open(path).value();
  const files::GgufFile file = files::GgufFile::from_contents(read_folder(folder).value());
  adapting::Tensors given;
};

// The vector of a text with newer weights, and the head that makes scores of it.
std::pair<std::vector<float>, ClassHead> newer_scores(const Replaced& base, const std::shared_ptr<ranks::RemotePasses>& passes,
                                                      std::int32_t count) {
  auto model = LanguageModel::load(base.file, kernels::best_kernel_table(), options_of(passes, count)).value();
  model->allocate_kv(kRankBlocks).value();
  const auto bytes = files::owned_bytes(base.given.file(), "newer");
  const auto newer = newer_tensors(LoadedTensors::of(base.folder).value(), bytes, false).value();
  auto weights = model->newer_weights(*model->first()->weights, newer.file).value();
  std::shared_ptr<const Copies> copies;
  if (passes != nullptr) copies = passes->hand_out(*bytes, false, *model->first()->copies).value();
  const auto decoder = model->make_decoder(std::move(weights), std::move(copies));
  model->adapters().set(1, std::make_shared<AdapterSet>(std::vector<AdapterSet::Part>(), decoder));
  DrivenRequest request;
  request.prompt = {5, 6, 7, 8, 9};
  request.pooling = Pooling::kLast;
  request.adapter = 1;
  return {StepDriver(*model, kRankBlocks).run({request}, {}).front().vector, decoder->head};
}

TEST(LocalRanks, NewerWeightsComeWithTheirHeadForClasses) {
  const Replaced base(BRAID_SOURCE_DIR "/test/model/reference/encoders/qwen3-labels");
  const auto [alone, head] = newer_scores(base, nullptr, 1);
  const auto [vector, its_head] = newer_scores(base, start_ranks(base.path, 2, describe_model(base.file)->vocab), 2);
  ASSERT_EQ(head.classes(), 3);
  ASSERT_EQ(its_head.classes(), 3);
  EXPECT_TRUE(std::ranges::equal(head.weights(), its_head.weights()));
  EXPECT_EQ(alone, vector);
}

TEST(LocalRanks, EachHasItsPartOfTheWeights) {
  const auto bytes_of = [](std::int32_t count) {
    auto group = ranks::RankGroup::start({.ranks = count, .nodes = two_nodes()}).value();
    return group->set_up({.model = kModel, .context = kContext}).value().weight_bytes;
  };
  const std::uint64_t whole = bytes_of(1), half = bytes_of(2);
  const std::uint64_t table = whole - 2 * (whole - half);  // embeddings, which each has: the rest is divided
  EXPECT_LT(half, whole * 3 / 4);
  EXPECT_LT(table, whole / 2);
}

TEST(Meetings, GiveAllPartsToAllInTheirOrder) {
  constexpr std::int32_t kRanks = 4;
  constexpr int kRounds = 2000;
  ranks::Meeting meeting(kRanks);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (std::int32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      std::array<float, kRanks> all{};
      for (int round = 0; round < kRounds; ++round) {
        const std::array<float, 1> own{static_cast<float>(round * kRanks + rank)};
        meeting.gather(rank, own, all);
        for (std::int32_t i = 0; i < kRanks; ++i)
          wrong += all[static_cast<std::size_t>(i)] == static_cast<float>(round * kRanks + i) ? 0 : 1;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(Meetings, EndForAllOnceOneHasLeft) {
  ranks::Meeting meeting(3);
  std::atomic<int> gone{0};
  std::vector<std::jthread> threads;
  for (const std::int32_t rank : {0, 1})
    threads.emplace_back([&, rank] {
      const std::array<float, 1> own{};
      std::array<float, 3> all{};
      try {
        meeting.gather(rank, own, all);
      } catch (const std::runtime_error&) {
        ++gone;
      }
    });
  meeting.leave();
  threads.clear();
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace braid::model::test
