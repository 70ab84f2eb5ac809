// Rows that verify drafted tokens: a step advances a sequence by one token or by several, and the next one is planned before it is known
// by how many.
#include "sched/rig.h"

#include <algorithm>

namespace braid::sched::test {
namespace {

SchedulerOptions drafting(std::int32_t tokens) {
  SchedulerOptions options = Rig::small_options();
  options.draft_tokens = tokens;
  options.draft_always = true;  // not as far as it pays on this machine
  return options;
}

TEST(Drafts, AnswersAreThoseOfSingleTokens) {
  for (const std::int32_t tokens : {1, 3, 8}) {
    Rig rig(drafting(tokens));
    for (std::int32_t i = 0; i < 6; ++i) rig.start(10 + 7 * i, 40 + i);
    ASSERT_TRUE(rig.run_until([&] { return std::ranges::all_of(rig.clients, [](const auto& client) { return client->finished(); }); }));
    for (const auto& client : rig.clients) rig.expect_right(*client);
    rig.run_to_end();
  }
}

TEST(Drafts, TakeFewerStepsThanTokens) {
  Rig rig(drafting(8));
  rig.complete(Rig::prompt_of(10, 1), 200);
  EXPECT_LT(rig.model.steps().size(), 150U);
  rig.run_to_end();
}

TEST(Drafts, NeverReachBeyondTheAnswerOrTheStream) {
  SchedulerOptions options = drafting(8);
  options.stream_capacity = 4;
  options.blocks = 8;
  options.context_length = 32;
  Rig rig(options);
  const Client& client = rig.complete(Rig::prompt_of(10, 1), 22);
  EXPECT_EQ(client.tokens.size(), 22U) << "the context is full";
  for (const StepRecord& step : rig.model.steps())
    for (const step::StepRow& row : step.rows) EXPECT_LE(row.block_count, 8U);
  rig.run_to_end();
}

TEST(Drafts, OfAWindowGiveBlocksBack) {
  SchedulerOptions options = drafting(5);
  options.groups = {{16, 4}};
  Rig rig(options);
  std::uint32_t most = 0;
  Client& client = rig.submit(10, 300);
  ASSERT_TRUE(rig.run_until([&] {
    const EngineStats stats = rig.scheduler->stats();
    most = std::max(most, stats.blocks_total - stats.blocks_free);
    return client.take(), client.finished();
  }));
  rig.expect_right(client);
  EXPECT_LE(most, 1U + 16 / 4 + 2 + 3) << "the first block, the window's, one more at each end, and what two steps may reach";
  rig.run_to_end();
}

// Some are preempted, some wait for their readers, and steps fail while rows that verify are on their way.
TEST(Drafts, SurvivePressureAndFailures) {
  SchedulerOptions options = drafting(6);
  options.blocks = 24;
  options.context_length = 80;
  options.stream_capacity = 5;
  for (const bool fails : {false, true}) {
    Rig rig(options);
    for (std::int32_t i = 0; i < 8; ++i) rig.submit(12, 60);
    for (int turn = 0; !rig.take_all() && turn < 100'000; ++turn) {
      if (fails && turn % 40 == 39) rig.model.fail_next("now and then");
      rig.loop.restart();
      rig.loop.run_one_for(std::chrono::milliseconds(1));
    }
    for (const auto& client : rig.clients) rig.expect_right(*client);
    rig.run_to_end();
  }
}

TEST(Drafts, WhatTheyWroteIsFoundAgain) {
  Rig rig(drafting(4));
  const Client& client = rig.complete(Rig::prompt_of(20, 1), 41);
  std::vector<TokenId> next = client.prompt;
  next.insert(next.end(), client.tokens.begin(), client.tokens.end());
  next.push_back(5);
  EXPECT_EQ(rig.complete(next, 5).finish->usage.cached_tokens, 60) << "all but the last token of the answer";
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
