// Layers that see differently: one group keeps everything, the other gives up what its window has passed, and prompts are found again.
#include "sched/groups.h"

#include "sched/rig.h"

#include <algorithm>

namespace braid::sched::test {
namespace {

constexpr step::Visibility kAll{};
constexpr step::Visibility kWindow{.window = 16, .sink = 0};

SchedulerOptions two_groups() {
  SchedulerOptions options = Rig::small_options();
  options.groups = {kAll, kWindow};
  return options;
}

TEST(Groups, AHalfWindowedModelNeedsHalfTheBlocksOfLongSequences) {
  const std::vector<step::Visibility> visible = {kAll, kWindow};
  const Groups groups(visible, 4);
  EXPECT_EQ(groups.blocks_at_once(3), 6);
  EXPECT_EQ(groups.blocks_at_once(1000), 1000 + 16 / 4 + 2);
  EXPECT_EQ(groups.most_places(1006), 1000);
  EXPECT_EQ(groups.most_places(5), 2);
}

TEST(Groups, WindowsWhoseBlocksFitBoundNoLength) {
  const std::vector<step::Visibility> visible = {kWindow, kWindow};
  const Groups groups(visible, 4);
  EXPECT_GT(groups.most_places(12), 1'000'000);
  EXPECT_EQ(groups.most_places(11), 5);
}

TEST(TwoGroups, WindowBlocksComeBackWhileASequenceGoesOn) {
  Rig rig(two_groups());
  Client& client = rig.submit(10, 400);
  std::uint32_t most_windowed = 0;
  std::uint32_t most_full = 0;
  ASSERT_TRUE(rig.run_until([&] {
    const EngineStats stats = rig.scheduler->stats();
    most_full = std::max(most_full, stats.group_blocks.at(0));
    most_windowed = std::max(most_windowed, stats.group_blocks.at(1));
    return client.take(), client.finished();
  }));
  rig.expect_right(client);
  EXPECT_GE(most_full, (10 + 400 - 1) / 4U);
  EXPECT_LE(most_windowed, 16U / 4 + 2) << "what the window shows, and a block at each end";
  rig.run_to_end();
}

TEST(TwoGroups, PromptsAreFoundAgainWhole) {
  for (const std::int32_t slice : {9, 64, 255}) {
    SchedulerOptions options = two_groups();
    options.max_batch_tokens = slice;
    Rig rig(options);
    const auto prompt = Rig::prompt_of(200, 1);
    rig.complete(prompt, 30);
    EXPECT_EQ(rig.complete(prompt, 30).finish->usage.cached_tokens, 199) << slice;
    rig.run_to_end();
  }
}

// The pool has taken what the window needs of the prompt's beginning, and not what it needs of its end.
TEST(TwoGroups, LostBlocksThatTheWindowHasPassedAreNotMissed) {
  SchedulerOptions options = two_groups();
  options.blocks = 2 * 50 + 4;
  Rig rig(options);
  const auto prompt = Rig::prompt_of(160, 1);
  rig.complete(prompt, 1);
  EXPECT_EQ(rig.scheduler->stats().cache_evictions, 0U);
  rig.complete(Rig::prompt_of(60, 2), 4);
  EXPECT_GT(rig.scheduler->stats().cache_evictions, 0U);
  const Client& again = rig.complete(prompt, 20);
  EXPECT_GE(again.finish->usage.cached_tokens, 156);
  rig.run_to_end();
}

// A beginning that two prompts share: the second one computes only what its window shows there, and the full group is found.
TEST(TwoGroups, ABranchWithoutItsWindowIsComputedAgainAndFoundThen) {
  SchedulerOptions options = two_groups();
  options.blocks = 130;
  Rig rig(options);
  auto prompt = Rig::prompt_of(160, 1);
  rig.complete(prompt, 1);
  rig.complete(Rig::prompt_of(160, 2), 1);  // takes the window's blocks of the first one's beginning
  std::vector<TokenId> branch(prompt.begin(), prompt.begin() + 80);
  for (std::int32_t i = 0; i < 20; ++i) branch.push_back(900 + i);
  rig.complete(branch, 3);
  const Client& again = rig.complete(branch, 3);
  EXPECT_EQ(again.finish->usage.cached_tokens, 99);
  rig.run_to_end();
}

// One alone takes a block for all positions in one group, and a window in the other.
TEST(TwoGroups, ASequenceAloneFillsThePool) {
  SchedulerOptions options = two_groups();
  options.blocks = 46;  // 40 places, and the six blocks of a window
  Rig rig(options);
  rig.complete(Rig::prompt_of(100, 1), 61);
  EXPECT_EQ(rig.clients[0]->tokens.size(), 61U);
  GenerationRequest request;
  request.prompt = Rig::prompt_of(161, 1);
  EXPECT_EQ(rig.scheduler->submit(std::move(request)).error().code, ErrorCode::kInvalidArgument);
  rig.run_to_end();
}

TEST(TwoGroups, PreemptedAnswersEqualSoloAnswers) {
  for (const bool prefix_cache : {true, false}) {
    SchedulerOptions options = two_groups();
    options.blocks = 60;
    options.prefix_cache = prefix_cache;
    Rig rig(options);
    for (int i = 0; i < 20; ++i) rig.start(5 + i % 11, 60 + i);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
    EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  }
}

// Four blocks of each group with 16 positions, of which the last is not written; one group uses half of its blocks' bytes.
TEST(TwoGroups, WhatHoldsNothingIsMeasured) {
  SchedulerOptions options = two_groups();
  options.block_use = {1.0, 0.5};
  Rig rig(options);
  rig.model.hold();
  rig.start(15, 1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().group_blocks.at(0) == 4; }));
  EXPECT_DOUBLE_EQ(rig.scheduler->stats().kv_fragmentation, (2.0 + 8.0) / 32.0);
  rig.model.release();
  rig.run_to_end();
  EXPECT_EQ(rig.scheduler->stats().kv_fragmentation, 0.0);
}

TEST(TwoGroups, WindowsComeAfterThoseThatSeeEverything) {
  SchedulerOptions options = Rig::small_options();
  options.groups = {kWindow, kAll};
  EXPECT_EQ(find_fault(options)->code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace braid::sched::test
