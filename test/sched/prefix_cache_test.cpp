// Sequences that begin alike share what has been computed. The fake's answers depend on what the blocks hold, so a wrong, stale or
// half-written block changes an answer.
#include "sched/rig.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>

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
  EXPECT_EQ(stats.blocks_cached, 7U) << "25 positions";
  EXPECT_EQ(stats.blocks_free, stats.blocks_total);
  rig.run_to_end();
}

TEST(PrefixCache, IsForgottenOnRequestButForWhatRuns) {
  Rig rig;
  const auto prompt = Rig::prompt_of(21, 1);
  rig.complete(prompt, 5);
  Client& runs = rig.submit(Rig::prompt_of(21, 2), 50);
  ASSERT_TRUE(rig.run_until([&] { return runs.take(); }));
  EXPECT_EQ(rig.scheduler->forget_prefixes(), 7);
  EXPECT_EQ(rig.scheduler->forget_prefixes(), 0);
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 5)), 0);
  EXPECT_EQ(cached_tokens(rig.complete(Rig::prompt_of(21, 2), 5)), 20) << "which a running sequence holds";
  rig.run_to_end();
}

TEST(PrefixCache, LastPromptTokenIsAlwaysComputed) {
  Rig rig;
  rig.complete(Rig::prompt_of(20, 1), 5);
  EXPECT_EQ(cached_tokens(rig.complete(Rig::prompt_of(20, 1), 5)), 19) << "of the last block a copy";
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
  EXPECT_EQ(cached_tokens(rig.complete(next, 5)), 21) << "generated tokens included";
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
  EXPECT_EQ(cached_tokens(rig.complete(prompt, 3, "one")), 29);
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

TEST(PrefixCache, AdaptersShareNothingAndOtherImagesWhatLiesBeforeThem) {
  Rig rig;
  const auto prompt = Rig::prompt_of(30, 1);
  const auto cached = [&](const Tint& tint) { return cached_tokens(rig.complete(rig.submit(Rig::tinted(tint, prompt, 3)))); };
  const Tint image{.image = 1, .first = 9, .count = 10};
  EXPECT_EQ(cached(image), 0);
  EXPECT_EQ(cached(image), 29);
  EXPECT_EQ(cached({.image = 2, .first = 9, .count = 10}), 9) << "of the block where it begins the beginning is copied";
  EXPECT_EQ(cached({.image = 1, .first = 9, .count = 11}), 19);
  EXPECT_EQ(cached({.image = 1, .first = 10, .count = 10}), 9);
  EXPECT_EQ(cached({}), 10) << "as much as the last one has of text";
  EXPECT_EQ(cached({.adapter = 1, .image = 1, .first = 9, .count = 10}), 0);
  EXPECT_EQ(cached({.adapter = 1, .image = 1, .first = 9, .count = 10}), 29);
  EXPECT_EQ(cached(image), 29);
  rig.run_to_end();
}

TEST(PrefixCache, RowsOfDifferentAdaptersShareAStepAndNoBlocks) {
  Rig rig;
  rig.model.hold();
  for (std::uint16_t i = 0; i < 6; ++i) rig.submit(Rig::tinted({.adapter = static_cast<std::uint16_t>(i % 3)}, Rig::prompt_of(30, 1), 8));
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  for (const auto& client : rig.clients) rig.expect_right(*client);
  std::set<std::uint32_t> together;
  for (const StepRecord& step : rig.model.steps()) {
    std::set<std::uint32_t> adapters;
    for (const step::StepRow& row : step.rows) adapters.insert(row.adapter);
    if (adapters.size() > together.size()) together = adapters;
  }
  EXPECT_EQ(together, (std::set<std::uint32_t>{0, 1, 2}));
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(cached_tokens(*rig.clients[i]), 29) << "of his own adapter's";
  rig.run_to_end();
}

// They wait for one another only as far as they are the same.
TEST(PrefixCache, ImagesAtOnceBehindTheSameTokens) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  Rig rig(options);
  rig.model.hold();
  for (std::uint16_t i = 0; i < 12; ++i) {
    const Tint tint{.adapter = static_cast<std::uint16_t>(i % 2), .image = static_cast<std::uint16_t>(1 + i % 3), .first = 40, .count = 30};
    rig.submit(Rig::tinted(tint, Rig::prompt_of(100, 1), 5));
  }
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  for (const auto& client : rig.clients) rig.expect_right(*client);
  EXPECT_EQ(rig.scheduler->stats().prompt_tokens, 2U * (100 + 60 + 60) + 6);
  rig.run_to_end();
}

TEST(PrefixCache, AnotherImageWaitsOnlyForWhatComesBeforeIt) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  Rig rig(options);
  rig.model.hold();
  for (const std::uint16_t image : std::array<std::uint16_t, 2>{1, 2})
    rig.submit(Rig::tinted({.image = image, .first = 40, .count = 30}, Rig::prompt_of(100, 1), 5));
  rig.model.release();
  std::uint64_t most_prefilling = 0;
  ASSERT_TRUE(rig.run_until([&] {
    most_prefilling = std::max<std::uint64_t>(most_prefilling, rig.scheduler->stats().prefilling);
    return rig.take_all();
  }));
  EXPECT_EQ(most_prefilling, 2U) << "the second is in the batch before the first has all of its prompt";
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST(PrefixCache, EqualPromptsAtOnceAreComputedOnce) {
  for (const std::int32_t length : {3, 4, 12, 14, 100}) {
    SchedulerOptions options = Rig::small_options();
    options.max_batch_tokens = 20;
    Rig rig(options);
    rig.model.hold();
    for (int i = 0; i < 8; ++i) rig.submit(Rig::prompt_of(length, 1), 5 + 4 * i);
    ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling + rig.scheduler->stats().decoding == 1; }));
    EXPECT_EQ(rig.scheduler->stats().waiting, 7U) << "for the first";
    rig.model.release();
    ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
    for (std::size_t i = 0; i < 8; ++i) {
      rig.expect_right(*rig.clients[i]);
      EXPECT_EQ(cached_tokens(*rig.clients[i]), i == 0 ? 0 : length - 1);
    }
    EXPECT_EQ(rig.scheduler->stats().prompt_tokens, static_cast<std::uint64_t>(length) + 7) << "but for everybody's last token";
    rig.run_to_end();
  }
}

TEST(PrefixCache, EqualPromptsStartTogetherOnceTheFirstIsComputed) {
  for (const std::int32_t length : {1, 3, 4, 12, 14}) {
    Rig rig;
    rig.model.hold();
    for (int i = 0; i < 8; ++i) rig.submit(Rig::prompt_of(length, 1), 5);
    rig.model.allow(2);
    ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling + rig.scheduler->stats().decoding == 8; }))
        << "nobody waits for a last token, which each computes itself; length " << length;
    rig.model.release();
    ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
    for (const auto& client : rig.clients) rig.expect_right(*client);
    rig.run_to_end();
  }
}

TEST(PrefixCache, WhoSharesOnlyTheBeginningWaitsOnlyForThat) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  Rig rig(options);
  rig.model.hold();
  const Client& first = rig.start(200, 3);
  Client& second = rig.submit(joined({first.prompt.begin(), first.prompt.begin() + 30}, {9, 9, 9, 9}), 3);
  Client& other = rig.submit(Rig::prompt_of(10, 5), 3);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling == 2; }));
  EXPECT_EQ(rig.phase(second), SequencePhase::kWaiting);
  EXPECT_EQ(rig.phase(other), SequencePhase::kPrefill) << "nobody waits for who waits";
  rig.model.allow(2);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 2; }));
  EXPECT_EQ(rig.phase(second), SequencePhase::kPrefill);
  EXPECT_EQ(rig.phase(first), SequencePhase::kPrefill);
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return second.take(), other.take(), first.finished() && second.finished() && other.finished(); }));
  EXPECT_EQ(cached_tokens(second), 30) << "two of them by copy";
  rig.expect_right(second);
  rig.run_to_end();
}

TEST(PrefixCache, FollowersGoOnWhenTheirLeaderLeaves) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  Rig rig(options);
  rig.model.hold();
  Client& leader = rig.submit(Rig::prompt_of(100, 1), 5);
  Client& gone = rig.submit(Rig::prompt_of(100, 1), 5);
  Client& next = rig.submit(Rig::prompt_of(100, 1), 5);
  Client& last = rig.submit(Rig::prompt_of(100, 1), 5);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling == 1; }));
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 1; }));
  gone.ticket.reset();
  leader.ticket.reset();
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return next.take(), last.take(), next.finished() && last.finished(); }));
  rig.expect_right(next);
  rig.expect_right(last);
  EXPECT_EQ(cached_tokens(next), 20) << "what the leader had";
  EXPECT_EQ(cached_tokens(last), 99);
  rig.run_to_end();
}

// The clock begins with the machine, so that on one that has just started a good priority lies before its beginning.
TEST(PrefixCache, FollowersWhoseRankLiesBeforeTheClockGoOn) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  options.priority_ageing = std::chrono::hours(24 * 365 * 100);
  Rig rig(options);
  rig.model.hold();
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request;
    request.prompt = Rig::prompt_of(100, 1);
    request.stop.max_tokens = 5;
    request.priority = -1;
    rig.submit(std::move(request));
  }
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling == 1; }));
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); })) << "the second waits for ever";
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST(PrefixCache, FollowersOfAFailedLeaderComputeThemselves) {
  Rig rig;
  rig.model.poison(7777);
  Client& leader = rig.start(joined(Rig::prompt_of(30, 1), {7777}), 5);
  Client& follower = rig.submit(Rig::prompt_of(30, 1), 5);
  ASSERT_TRUE(rig.run_until([&] { return follower.take(), leader.finished() && follower.finished(); }));
  EXPECT_EQ(leader.finish->reason, FinishReason::kError);
  rig.expect_right(follower);
  rig.run_to_end();
}

// A block of a cached path is copied as far as it agrees: up to the last but one token, or to where the prompts part.
TEST(PrefixCache, PartsOfBlocksAreCopied) {
  Rig rig;
  const Client& first = rig.complete(Rig::prompt_of(18, 1), 12);  // 29 positions written
  EXPECT_EQ(cached_tokens(rig.complete({first.prompt.begin(), first.prompt.begin() + 11}, 6)), 10);
  EXPECT_EQ(cached_tokens(rig.complete(joined({first.prompt.begin(), first.prompt.begin() + 14}, {1000, 1001, 1002}), 6)), 14);
  EXPECT_EQ(cached_tokens(rig.complete({first.prompt[0], first.prompt[1], 1000}, 6)), 2) << "of the first block";
  EXPECT_EQ(cached_tokens(rig.complete(joined(joined(first.prompt, first.tokens), {5, 6, 7}), 5)), 29) << "of a block that never was full";
  EXPECT_EQ(cached_tokens(rig.complete(joined({first.prompt.begin(), first.prompt.begin() + 14}, {1000, 1001, 1003}), 6)), 16)
      << "the best of several";
  rig.run_to_end();
}

// Whoever copied goes his own way: nothing that one writes later is seen by the other.
TEST(PrefixCache, CopiesAreIndependent) {
  Rig rig;
  Client& running = rig.start(10, 60);
  ASSERT_TRUE(rig.run_until([&] { return running.tokens.size() > 1; }));
  for (int i = 0; i < 20; ++i) rig.start(10, 10 + i);
  for (int i = 0; i < 10; ++i) rig.submit(joined(running.prompt, {i}), 20 + i);
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
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
  const auto prompt = joined(Rig::prompt_of(30, 1), {7777});
  rig.model.poison(7777);
  Client& failed = rig.submit(prompt, 5);
  ASSERT_TRUE(rig.run_until([&] { return failed.take(), failed.finished(); }));
  EXPECT_EQ(failed.finish->reason, FinishReason::kError);
  EXPECT_EQ(rig.scheduler->stats().blocks_cached, 0U);
  rig.model.heal();
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
  constexpr int kTurns = 10'000;
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
  EXPECT_GT(stats.cache_hit_tokens, 100'000U);
  EXPECT_GT(stats.cache_evictions, 5'000U);
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
