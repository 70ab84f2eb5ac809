// Sequences that begin alike share what has been computed. The fake's answers depend on what the blocks hold, so a wrong, stale or
// half-written block changes an answer.
#include "sched/rig.h"

#include <algorithm>
#include <random>

namespace braid::sched::test {
namespace {

std::int32_t cached_tokens(const Client& client) { return client.finish->usage.cached_tokens; }

std::vector<TokenId> joined(std::vector<TokenId> head, const std::vector<TokenId>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// Blocks of 4 tokens throughout.
TEST(PrefixCache, RepeatedPromptIsComputedOnce) {
  Rig rig;
  const auto prompt = Rig::prompt_of(21, 1);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 5)), 0);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 5)), 20);
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_EQ(stats.prompt_tokens, 22U) << "the second time only the last token";
  EXPECT_EQ(stats.cache_hit_tokens, 20U);
  EXPECT_EQ(stats.cache_miss_tokens, 22U);
  EXPECT_EQ(stats.blocks_cached, 6U) << "25 positions, the last one not written";
  EXPECT_EQ(stats.blocks_free, stats.blocks_total);
  rig.run_to_end();
}

TEST(PrefixCache, LastPromptTokenIsAlwaysComputed) {
  Rig rig;
  rig.complete(Rig::prompt_of(20, 1), 5);
  EXPECT_EQ(cached_tokens(rig.complete(Rig::prompt_of(20, 1), 5)), 16);
  EXPECT_EQ(cached_tokens(rig.complete(Rig::prompt_of(1, 1), 1)), 0);
  rig.run_to_end();
}

TEST(PrefixCache, ConsumerWithAStopStringLearnsWhatWasCached) {
  Rig rig;
  rig.complete(Rig::prompt_of(20, 1), 5);
  Client& stops = rig.submit(Rig::prompt_of(20, 1), 50);
  EXPECT_EQ(stops.ticket->cached_tokens(), 0) << "not started";
  ASSERT_TRUE(rig.run_until([&] { return stops.take(); }));
  const std::int32_t cached = stops.ticket->cached_tokens();
  EXPECT_GE(cached, 16);
  stops.ticket->complete();
  EXPECT_EQ(stops.ticket->cached_tokens(), cached);
  EXPECT_EQ(rig.scheduler->stats().finished, 2U);
  EXPECT_EQ(rig.scheduler->stats().cancelled, 0U);
  rig.run_to_end();
}

TEST(PrefixCache, ConversationContinuesAfterItsAnswer) {
  Rig rig;
  const Client& first = rig.complete(Rig::prompt_of(10, 1), 12);  // 21 positions written
  const auto next = joined(joined(first.prompt, first.tokens), {5, 6, 7});
  EXPECT_EQ(cached_tokens(rig.complete(next, 5)), 20) << "generated tokens included";
  rig.run_to_end();
}

TEST(PrefixCache, BranchesShareTheirTrunk) {
  Rig rig;
  const auto trunk = Rig::prompt_of(40, 1);
  rig.complete(joined(trunk, {1, 2, 3, 4, 5}), 4);
  EXPECT_EQ(cached_tokens(rig.complete(joined(trunk, {9, 2, 3, 4, 5}), 4)), 40);
  EXPECT_EQ(cached_tokens(rig.complete(joined(trunk, {1, 2, 3, 4, 9}), 4)), 44);
  rig.run_to_end();
}

TEST(PrefixCache, SaltsAndOffShareNothing) {
  const auto prompt = Rig::prompt_of(30, 1);
  Rig rig;
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 3, "one")), 0);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 3, "two")), 0);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 3)), 0);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 3, "one")), 28);
  rig.run_to_end();

  SchedulerOptions options = Rig::small_options();
  options.prefix_cache = false;
  Rig off(options);
  off.complete(prompt, 3);
  EXPECT_EQ(cached_tokens(off.complete(prompt, 3)), 0);
  EXPECT_EQ(off.scheduler->stats().cache_miss_tokens, 0U);
  EXPECT_EQ(off.scheduler->stats().blocks_cached, 0U);
  off.run_to_end();
}

TEST(PrefixCache, EqualSequencesAtOnceEndUpOnTheSameBlocks) {
  Rig rig;
  rig.model.hold();
  for (int i = 0; i < 4; ++i) rig.submit(Rig::prompt_of(12, 1), 20);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 4; }));
  EXPECT_EQ(rig.options.blocks - static_cast<std::int32_t>(rig.scheduler->stats().blocks_free), 12 + 4) << "each has its own so far";
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 1; }));
  EXPECT_EQ(rig.options.blocks - static_cast<std::int32_t>(rig.scheduler->stats().blocks_free), 3 + 4);
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] {
    for (const auto& client : rig.clients) client->take();
    return std::ranges::all_of(rig.clients, [](const auto& client) { return client->finished(); });
  }));
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST(PrefixCache, PreemptedSequencesFindTheirBlocksAgain) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 40;
  const auto computed = [&](bool prefix_cache) {
    options.prefix_cache = prefix_cache;
    Rig rig(options);
    for (int i = 0; i < 20; ++i) rig.start(5 + i % 11, 40 + i);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
    EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
    return rig.scheduler->stats().prompt_tokens;
  };
  EXPECT_LT(computed(true), computed(false));
}

TEST(PrefixCache, FailedStepPublishesNothing) {
  Rig rig;
  const auto prompt = Rig::prompt_of(30, 1);
  rig.model.fail_next("no luck");
  Client& failed = rig.submit(prompt, 5);
  ASSERT_TRUE(rig.run_until([&] { return failed.take(), failed.finished(); }));
  EXPECT_EQ(failed.finish->reason, FinishReason::kError);
  EXPECT_EQ(rig.scheduler->stats().blocks_cached, 0U);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 5)), 0);
  rig.run_to_end();
}

TEST(PrefixCache, CancelledPrefillLeavesWhatHasComeBack) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  Rig rig(options);
  rig.model.hold();
  Client& gone = rig.submit(Rig::prompt_of(100, 1), 5);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling == 1; }));
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 1; }));
  gone.ticket.reset();
  rig.model.release();
  EXPECT_EQ(cached_tokens(rig.complete(Rig::prompt_of(100, 1), 5)), 20);
  rig.run_to_end();
}

// The front of the queue holds its hit while it waits for the rest; who decodes may take it away.
TEST(PrefixCache, WaitingHitGivesWayToWhoRuns) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 30;
  Rig rig(options);
  rig.complete(Rig::prompt_of(60, 1), 2);
  Client& running = rig.start(20, 80);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(running) == SequencePhase::kDecode; }));
  Client& waiting = rig.submit(joined(Rig::prompt_of(60, 1), Rig::prompt_of(45, 2)), 5);
  ASSERT_TRUE(rig.run_until([&] { return running.finished(); }));
  EXPECT_EQ(rig.scheduler->stats().preemptions, 0U);
  rig.expect_right(running);
  ASSERT_TRUE(rig.run_until([&] { return waiting.take(), waiting.finished(); }));
  rig.expect_right(waiting);
  rig.run_to_end();
}

// 64 conversations of several turns at once, each with a marker of its own in every turn, in a pool that holds a few of them: an answer
// made from anybody else's blocks would differ.
TEST(PrefixCache, ConversationsStayApartUnderPressure) {
  constexpr int kConversations = 64;
  constexpr int kTurns = 2'000;
  SchedulerOptions options = Rig::small_options();
  options.blocks = 220;
  options.context_length = 160;
  Rig rig(options);
  const auto opening = Rig::prompt_of(16, 7);  // all begin alike
  const auto marker = [](int conversation, int turn) { return std::vector<TokenId>{1000 + conversation, turn, 1000 + conversation}; };
  std::vector<std::vector<TokenId>> histories(kConversations);
  std::vector<Client*> asking(kConversations, nullptr);
  std::mt19937 random(3);
  int turns = 0;
  ASSERT_TRUE(rig.run_until([&] {
    for (int i = 0; i < kConversations; ++i) {
      auto& client = asking[static_cast<std::size_t>(i)];
      auto& history = histories[static_cast<std::size_t>(i)];
      if (client != nullptr) {
        client->take();
        if (!client->finished()) continue;
        rig.expect_right(*client);
        history = joined(client->prompt, client->tokens);
        client->ticket.reset();
        client = nullptr;
      }
      if (turns == kTurns || random() % 4 == 0) continue;
      if (history.empty() || history.size() > 120) history = joined(opening, marker(i, turns));
      client = &rig.submit(joined(history, marker(i, turns++)), 1 + static_cast<std::int32_t>(random() % 12));
    }
    return turns == kTurns && std::ranges::count(asking, nullptr) == kConversations;
  }));
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_GT(stats.cache_hit_tokens, 20'000U);
  EXPECT_GT(stats.cache_evictions, 1'000U);
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
