// Recurrent states: carried on in place by every row, and found again at checkpoints of the prefix cache.
#include "cache/block_table.h"
#include "sched/groups.h"
#include "sched/rank.h"
#include "sched/rig.h"
#include "sched/sequence.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace braid::sched::test {
namespace {

SchedulerOptions with_states(std::int32_t interval = 64) {
  SchedulerOptions options = Rig::small_options();
  options.state_blocks = 3;
  options.state_interval = interval;
  return options;
}

std::vector<TokenId> behind(std::vector<TokenId> one, const std::vector<TokenId>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

std::int32_t cached(const Client& client) { return client.finish->usage.cached_tokens; }

TEST(RecurrentStates, AnAnswerIsTheSameForEverySlice) {
  for (const std::int32_t slice : {9, 64, 255}) {
    SchedulerOptions options = with_states();
    options.max_batch_tokens = slice;
    Rig rig(options);
    for (int i = 0; i < 12; ++i) rig.start(1 + 17 * i, 20 + i);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
  }
}

// The state before its last token was kept, at whatever place of a block that is.
TEST(RecurrentStates, APromptOfTheSameTokensComputesItsLastOneOnly) {
  for (const std::int32_t length : {2, 4, 5, 64, 65, 198}) {
    for (const std::int32_t answer : {2, 10}) {  // that ends in the prompt's last block, or behind it
      Rig rig(with_states());
      const auto prompt = Rig::prompt_of(length, 1);
      rig.complete(prompt, answer);
      EXPECT_EQ(cached(rig.complete(prompt, 10)), length - 1) << length;
    }
  }
}

TEST(RecurrentStates, TheNextTurnOfAChatComputesItsNewTokens) {
  Rig rig(with_states(0));
  auto chat = Rig::prompt_of(50, 1);
  rig.complete(chat, 13);
  for (std::int32_t turn = 0; turn < 4; ++turn) {
    chat = behind(chat, rig.clients.back()->tokens);
    const auto computed = static_cast<std::int32_t>(chat.size()) - 1;  // all but the answer's last token
    chat = behind(chat, Rig::prompt_of(7, 100 + turn));
    EXPECT_EQ(cached(rig.complete(chat, 11 + turn)), computed);
  }
}

TEST(RecurrentStates, AnEditedTurnBeginsAtTheCheckpointBeforeIt) {
  Rig rig(with_states(32));
  auto prompt = Rig::prompt_of(150, 1);
  rig.complete(prompt, 5);
  prompt[111] = 998;
  EXPECT_EQ(cached(rig.complete(prompt, 5)), 96);
}

// Behind each of the last eight, whatever the interval.
TEST(RecurrentStates, AnEditedTurnBeginsBehindTheTurnBeforeIt) {
  constexpr TokenId kEnd = 996;
  SchedulerOptions options = with_states(0);
  options.turn_ends = {kEnd};
  for (const std::int32_t slice : {9, 255}) {
    options.max_batch_tokens = slice;
    Rig rig(options);
    auto prompt = Rig::prompt_of(190, 1);
    std::ranges::replace(prompt, kEnd, TokenId{995});
    for (std::size_t at = 16; at < prompt.size(); at += 17) prompt[at] = kEnd;  // 11 of them
    rig.complete(prompt, 5);
    for (const std::int32_t edited : {180, 111, 77}) {
      auto other = prompt;
      other[static_cast<std::size_t>(edited)] = 998;
      EXPECT_EQ(cached(rig.complete(other, 5)), edited / 17 * 17) << edited << ", slices of " << slice;
    }
    auto early = prompt;
    early[60] = 998;  // the third turn of eleven has none behind it
    EXPECT_EQ(cached(rig.complete(early, 5)), 0);
  }
}

TEST(RecurrentStates, AMarkedTurnIsKeptHoweverFarBack) {
  constexpr TokenId kEnd = 996;
  SchedulerOptions options = with_states(0);
  options.turn_ends = {kEnd};
  for (const std::int32_t slice : {9, 255}) {
    options.max_batch_tokens = slice;
    Rig rig(options);
    GenerationRequest request;
    request.prompt = Rig::prompt_of(198, 1);
    std::ranges::replace(request.prompt, kEnd, TokenId{995});
    for (std::size_t at = 9; at < 190; at += 10) request.prompt[at] = kEnd;  // 19 turns, the last one behind token 190
    const auto prompt = request.prompt;
    request.marked_turns = {1, 15, 17, 40};
    request.stop.max_tokens = 3;
    rig.complete(rig.submit(std::move(request)));
    const auto cached_of_edit = [&](std::size_t at) {
      auto edited = prompt;
      edited[at] = 998;
      return cached(rig.complete(edited, 3));
    };
    EXPECT_EQ(cached_of_edit(185), 180) << slice;
    EXPECT_EQ(cached_of_edit(66), 40) << "behind the fourth turn, the 16th from the end";
    EXPECT_EQ(cached_of_edit(38), 20);
    EXPECT_EQ(cached_of_edit(15), 0);
  }
}

// The end of what they share lies within a block, of which each of them makes one of its own; the first one's would be evicted, were it not
// used by all.
TEST(RecurrentStates, ManyChatsGoOnBehindOneBeginning) {
  constexpr TokenId kEnd = 996;
  SchedulerOptions options = with_states(0);
  options.turn_ends = {kEnd};
  for (const std::int32_t blocks : {1024, 120}) {
    options.blocks = blocks;
    Rig rig(options);
    auto shared = Rig::prompt_of(50, 1);
    std::ranges::replace(shared, kEnd, TokenId{995});
    shared.back() = kEnd;
    rig.complete(behind(shared, Rig::prompt_of(3, 100)), 3);
    for (std::int32_t chat = 1; chat < 40; ++chat)
      EXPECT_EQ(cached(rig.complete(behind(shared, Rig::prompt_of(3, 100 + chat)), 3)), 50) << chat << ", " << blocks << " blocks";
    rig.run_to_end();
  }
}

TEST(RecurrentStates, AreCounted) {
  Rig rig(with_states(32));
  EXPECT_EQ(rig.scheduler->stats().states_cached, 0U);
  rig.complete(Rig::prompt_of(100, 1), 5);
  EXPECT_EQ(rig.scheduler->stats().states_cached, 5U) << "32, 64, 96, before the prompt's last token, behind the answer's last but one";
  EXPECT_EQ(rig.scheduler->stats().state_blocks_cached, 15U);
  Rig without(Rig::small_options());
  without.complete(Rig::prompt_of(100, 1), 5);
  EXPECT_EQ(without.scheduler->stats().states_cached, 0U);
}

// Those that were used last stay.
TEST(RecurrentStates, TakeNoMoreThanTheirMemory) {
  SchedulerOptions options = with_states(32);
  options.most_state_blocks = 7;
  Rig rig(options);
  const auto prompt = Rig::prompt_of(100, 1);
  rig.complete(prompt, 5);
  EngineStats stats = rig.scheduler->stats();
  EXPECT_EQ(stats.state_blocks_most, 7U);
  EXPECT_EQ(stats.states_cached, 2U) << "before the prompt's last token, behind the answer's last but one";
  EXPECT_EQ(stats.state_blocks_cached, 6U);
  EXPECT_EQ(stats.states_dropped, 3U);
  EXPECT_EQ(cached(rig.complete(prompt, 5)), 99);
  for (std::int32_t other = 2; other < 5; ++other) {
    rig.complete(Rig::prompt_of(20, other), 1);  // one state, and another one behind the whole prompt
    EXPECT_EQ(rig.scheduler->stats().state_blocks_cached, 6U);
  }
  EXPECT_EQ(cached(rig.complete(prompt, 5)), 0) << "all of its states have gone";
  rig.run_to_end();
}

TEST(RecurrentStates, OfWhichNoneFitsItsMemoryNoCopiesAreMade) {
  SchedulerOptions options = with_states(32);
  options.most_state_blocks = 2;
  Rig rig(options);
  const auto prompt = Rig::prompt_of(100, 1);
  rig.complete(prompt, 5);
  EXPECT_EQ(cached(rig.complete(prompt, 5)), 0);
  EXPECT_EQ(rig.scheduler->stats().states_cached, 0U);
  for (const StepRecord& step : rig.model.steps())
    for (const step::StepRow& row : step.rows) EXPECT_EQ(row.snapshot_count, 0U);
}

TEST(RecurrentStates, WithoutCheckpointsOnTheWayAnEditedTurnBeginsAnew) {
  Rig rig(with_states(0));
  auto prompt = Rig::prompt_of(150, 1);
  rig.complete(prompt, 5);
  prompt[111] = 998;
  EXPECT_EQ(cached(rig.complete(prompt, 5)), 0);
}

TEST(RecurrentStates, ChoicesOfOnePromptForkItsState) {
  Rig rig(with_states());
  const auto prompt = Rig::prompt_of(90, 1);
  for (int i = 0; i < 4; ++i) rig.start(prompt, 8 + i);
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  for (const auto& client : rig.clients) rig.expect_right(*client);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(cached(*rig.clients[i]), 89);
}

TEST(RecurrentStates, PreemptedAnswersEqualSoloAnswers) {
  for (const bool prefix_cache : {true, false}) {
    SchedulerOptions options = with_states(16);
    options.blocks = 80;
    options.prefix_cache = prefix_cache;
    Rig rig(options);
    for (int i = 0; i < 20; ++i) rig.start(5 + i % 11, 60 + i);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
    EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  }
}

// Of two answers at the same time in a pool where both are too much, that of `first` tokens goes on, and the other one is preempted for it. With
// `limit` the first one might become longer, and its client leaves it there.
struct TwoAnswers {
  static constexpr std::int32_t kPrompt = 20;
  static constexpr std::int32_t kInterval = 16;
  std::int32_t known = 0;  // tokens of the second one, when it was preempted
  std::int32_t again = 0;  // how many of them it computed again
  std::int32_t room = 0;   // positions for which there is room beside a state, and beside all that the first one takes

  TwoAnswers(const SchedulerOptions& options, std::int32_t first, std::optional<std::int32_t> limit = std::nullopt) {
    const std::int32_t positions = kPrompt + first - 1;
    room =
        (options.blocks - 2 * options.state_blocks - (positions + options.block_tokens - 1) / options.block_tokens) * options.block_tokens;
    Rig rig(options);
    const Client& one = rig.start(kPrompt, limit.value_or(first));
    const Client& other = rig.start(kPrompt, 140);
    EXPECT_TRUE(rig.run_until([&] { return rig.scheduler->stats().preemptions > 0 && rig.phase(other) == SequencePhase::kWaiting; }));
    for (const SequenceSnapshot& sequence : rig.scheduler->sequences(2))
      if (sequence.id == other.id) known = kPrompt + sequence.generated_tokens;
    if (limit) {
      EXPECT_TRUE(rig.run_until([&] { return std::cmp_greater_equal(one.tokens.size(), first); }));
      rig.scheduler->cancel(one.id);
    }
    rig.run_to_end();
    rig.expect_right(other);
    const EngineStats stats = rig.scheduler->stats();
    again = static_cast<std::int32_t>(stats.cache_miss_tokens) - 2 * kPrompt;
  }

  // Behind the last checkpoint that there can have been, which is one at the end of what it knows.
  std::int32_t least_again() const { return std::max(1, known - room / kInterval * kInterval); }
};

SchedulerOptions for_two(std::int32_t state_blocks) {
  SchedulerOptions options = with_states(TwoAnswers::kInterval);
  options.state_blocks = state_blocks;
  options.blocks = 54 + 2 * state_blocks;
  return options;
}

// It is known how much the first one may take.
TEST(RecurrentStates, APreemptedAnswerGoesOnFromTheLastCheckpointThatFitsBesideTheOthers) {
  for (const std::int32_t state_blocks : {1, 3, 5, 9})
    for (const std::int32_t first : {88, 92, 100, 108, 116, 125, 132}) {
      const TwoAnswers two(for_two(state_blocks), first);
      EXPECT_LE(two.again, two.least_again() + TwoAnswers::kInterval) << first << ", of " << two.known << ", states of " << state_blocks;
    }
}

// It might take all: then a checkpoint in the second half is kept beside the last one.
TEST(RecurrentStates, APreemptedAnswerGoesOnFromTheSecondHalfWhereTheOthersMayTakeAll) {
  for (const std::int32_t state_blocks : {1, 3, 5, 9})
    for (const std::int32_t first : {88, 92, 100, 108, 116, 125}) {
      const TwoAnswers two(for_two(state_blocks), first, 400);
      EXPECT_LE(two.again, two.known / 2 + TwoAnswers::kInterval) << first << ", of " << two.known << ", states of " << state_blocks;
    }
}

// Of three answers at the same time the last two are preempted, and the first one makes checkpoints of its own meanwhile. The last one in line
// holds what it goes on from as well, and gives up no more of it than somebody needs: half of its positions and the states there, when it goes
// back.
TEST(RecurrentStates, WhoeverIsPreemptedHoldsWhatItGoesOnFrom) {
  for (const std::int32_t state_blocks : {3, 9}) {
    SchedulerOptions options = with_states(16);
    options.state_blocks = state_blocks;
    options.blocks = state_blocks == 3 ? 81 : 107;
    Rig rig(options);
    const Client& first = rig.start(20, 150);
    const std::array<const Client*, 2> others{&rig.start(20, 150), &rig.start(20, 140)};
    std::uint64_t most_free = 0;
    bool have_waited = false;
    ASSERT_TRUE(rig.run_until([&] {
      const EngineStats stats = rig.scheduler->stats();
      const bool wait = stats.preemptions >= 2 && !first.finished() &&
                        std::ranges::all_of(others, [&](const Client* one) { return rig.phase(*one) == SequencePhase::kWaiting; });
      if (wait) most_free = std::max<std::uint64_t>(most_free, stats.blocks_free);
      have_waited = have_waited || wait;
      return first.finished();
    }));
    EXPECT_TRUE(have_waited);
    EXPECT_LT(most_free, 14U + 2 * static_cast<std::uint64_t>(state_blocks)) << "of some 25 and a state or two";
    rig.run_to_end();
    const EngineStats stats = rig.scheduler->stats();
    EXPECT_LE(stats.cache_miss_tokens - 60, stats.preemptions * 64) << "of some 100 each, states of " << state_blocks;
  }
}

// Whose states and checkpoints fill it.
TEST(RecurrentStates, APoolThatIsShortNeverStops) {
  for (const std::int32_t state_blocks : {1, 3, 9})
    for (std::int32_t spare = 0; spare < 40; spare += 3) {
      SchedulerOptions options = with_states(spare % 2 == 0 ? 8 : 5);
      options.state_blocks = state_blocks;
      options.blocks = 16 + state_blocks + spare;
      Rig rig(options);
      for (int i = 0; i < 10; ++i) rig.start(Rig::prompt_of(4 + 2 * i, i % 5), 40);
      rig.run_to_end();
      for (const auto& client : rig.clients) rig.expect_right(*client);
    }
}

// A new checkpoint takes the place of one whose blocks come free for it: one that others hold as well is kept.
TEST(RecurrentStates, ACheckpointThatOthersHoldDoesNotMakeRoomForAnother) {
  const std::vector<step::Visibility> visible(1);
  const Groups groups(visible, 4, 3);
  cache::BlockPool pool(9, 2);
  Sequence sequence(Rank::first(), {}, 1, pool, groups);
  std::vector<cache::BlockTable> states;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(states.emplace_back(pool).grow_to(3));
  const auto keep = [&](const cache::BlockTable& state, std::int32_t end) {
    cache::BlockTable checkpoint(pool);
    checkpoint.adopt(state.all());
    sequence.keep_checkpoint(end, std::move(checkpoint));
  };
  keep(states[0], 16);
  keep(states[1], 32);
  EXPECT_FALSE(sequence.spare_state(48));
  EXPECT_EQ(sequence.state->kept.size(), 2U);
  states[0].clear();
  const auto spare = sequence.spare_state(48);
  EXPECT_TRUE(spare);
  EXPECT_EQ(sequence.state->kept.size(), 1U) << "its own has gone";
  EXPECT_FALSE(sequence.spare_state(64));
  EXPECT_EQ(sequence.state->kept.size(), 1U);
}

// What nobody can find is not held.
TEST(RecurrentStates, CheckpointsThatMayTakeNoMoreMemoryAreLetGo) {
  SchedulerOptions options = with_states(8);
  options.most_state_blocks = 6;
  Rig rig(options);
  for (int i = 0; i < 8; ++i) rig.submit(20, 40);
  ASSERT_TRUE(rig.run_until([&] {
    rig.take_all();
    return std::ranges::all_of(rig.clients, [](const auto& client) { return client->tokens.size() > 20; });
  }));
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_GT(stats.states_dropped, 8U);
  const std::uint64_t most = 8 * (11 + 3) + 6;  // up to 44 positions and a state each, and two checkpoints; the next ones are made at 48
  EXPECT_LE(stats.blocks_total - stats.blocks_free, most);
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  rig.run_to_end();
}

// Nobody has wanted its blocks meanwhile.
TEST(RecurrentStates, AParkedAnswerGoesOnFromWhereItWas) {
  SchedulerOptions options = with_states(16);
  options.stream_capacity = 6;
  options.stall_park = std::chrono::milliseconds(1);
  options.stall_drop = std::chrono::hours(1);
  Rig rig(options);
  Client& slow = rig.submit(37, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(slow) == SequencePhase::kParked; }));
  ASSERT_TRUE(rig.run_until([&] { return slow.take(), slow.finished(); }));
  rig.run_to_end();
  rig.expect_right(slow);
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_EQ(stats.cache_miss_tokens, 37 + stats.parks_total) << "of an answer its last token only";
}

TEST(RecurrentStates, AreKeptInAPoolThatWasShrunk) {
  SchedulerOptions options = with_states(0);
  options.blocks = 1600;
  Rig rig(options);
  EXPECT_EQ(rig.scheduler->resize(100, {}), 100);
  const auto prompt = Rig::prompt_of(60, 1);
  rig.complete(prompt, 5);
  EXPECT_EQ(cached(rig.complete(prompt, 5)), 59);
  rig.run_to_end();
}

// Those who wait hold a checkpoint, and the block that it ends in, beside what they need.
TEST(RecurrentStates, APoolShrinksToWhatCanStillBegin) {
  SchedulerOptions options = with_states(8);
  options.max_batch = 1;
  options.blocks = 200;
  Rig rig(options);
  const auto prompt = Rig::prompt_of(54, 1);
  rig.complete(prompt, 2);
  rig.start(9, 40);
  rig.start(prompt, 2);
  const std::int32_t least = 14 + 3 + 3 + 1;  // positions, its state, the checkpoint, a copy of the block that this ends in
  EXPECT_EQ(rig.scheduler->resize(1, {}), least);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

// What the failed step has left in the state is not gone on with, nor found by others.
TEST(RecurrentStates, AFailedStepIsComputedAgainFromACheckpoint) {
  Rig rig(with_states(16));
  const auto prompt = Rig::prompt_of(70, 1);
  Client& client = rig.submit(prompt, 40);
  ASSERT_TRUE(rig.run_until([&] { return client.take(), client.tokens.size() == 9; }));
  rig.model.poison(client.tokens[4]);
  ASSERT_TRUE(rig.run_until([&] { return client.take(), rig.scheduler->stats().retried_steps > 0; }));
  rig.model.heal();
  rig.complete(client);
  const auto before = rig.scheduler->stats().prompt_tokens;
  EXPECT_LT(before, 2 * 70U) << "the prompt was computed again";
  rig.complete(behind(prompt, client.tokens), 10);
}

// A client that goes while its row is out: where the state is then, no tokens are known for.
TEST(RecurrentStates, ACancelledSequenceLeavesNoWrongState) {
  for (int steps = 0; steps < 6; ++steps) {
    Rig rig(with_states(8));
    const auto prompt = Rig::prompt_of(30, 1);
    rig.model.hold();
    Client& client = rig.submit(prompt, 20);
    rig.model.allow(1 + steps);
    ASSERT_TRUE(rig.run_until([&] { return client.take(), std::cmp_greater_equal(client.tokens.size(), 1 + steps); }));
    rig.scheduler->cancel(client.id);
    rig.model.release();
    ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().blocks_free == rig.scheduler->stats().blocks_total; }));
    StopRules stop;
    stop.max_tokens = 12;
    const auto expected = rig.model.expected(prompt, stop);
    rig.complete(behind(prompt, expected), 12);
    rig.complete(prompt, 12);
  }
}

// One alone takes all that the pool has beside its state, even when what it begins with is cached.
TEST(RecurrentStates, ASequenceAloneFillsThePool) {
  SchedulerOptions options = with_states(8);
  options.blocks = 43;
  Rig rig(options);
  rig.complete(Rig::prompt_of(100, 1), 61);
  EXPECT_EQ(rig.clients[0]->tokens.size(), 61U);
  rig.complete(Rig::prompt_of(60, 1), 1);
  rig.complete(Rig::prompt_of(160, 1), 1);
  GenerationRequest request;
  request.prompt = Rig::prompt_of(161, 1);
  EXPECT_EQ(rig.scheduler->submit(std::move(request)).error().code, ErrorCode::kInvalidArgument);
  rig.run_to_end();
}

// Where the windows of all groups have let go of a beginning nothing more is published, and no copy waits for that.
TEST(RecurrentStates, CopiesThatNoBlockComesForAreGivenUp) {
  SchedulerOptions options = with_states(8);
  options.groups = {{6, 4}, {46, 8}};
  options.max_batch_tokens = 50;
  options.state_blocks = 2;
  options.blocks = 16;
  Rig rig(options);
  rig.complete(Rig::prompt_of(21, 1), 16);
  rig.run_to_end();
}

// Those that wait hold what they begin with; he who needs it gets it.
TEST(RecurrentStates, CheckpointsHeldByThoseWhoWaitAreGivenUp) {
  SchedulerOptions options = with_states(8);
  options.blocks = 64;
  options.max_batch = 2;
  Rig rig(options);
  for (int i = 0; i < 4; ++i) rig.complete(Rig::prompt_of(20, i), 1);
  for (int i = 0; i < 12; ++i) rig.start(behind(Rig::prompt_of(20, i % 4), Rig::prompt_of(5 + i, 50 + i)), 100);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

// A state cannot go back behind wrong guesses; wherever a row ends, the next turn goes on there.
TEST(RecurrentStates, GoOnBehindGuessesThatWereRight) {
  for (const std::int32_t drafts : {1, 2, 5}) {
    SchedulerOptions options = with_states(0);
    options.draft_tokens = drafts;
    options.draft_always = true;
    Rig rig(options);
    auto chat = Rig::prompt_of(50, 1);
    rig.complete(chat, 33);
    const auto is_over = [&] { return rig.scheduler->stats().blocks_free == rig.scheduler->stats().blocks_total; };
    for (std::int32_t turn = 0; turn < 4; ++turn) {
      ASSERT_TRUE(rig.run_until(is_over)) << "a step may still be out";
      chat = behind(chat, rig.clients.back()->tokens);
      const auto computed = static_cast<std::int32_t>(chat.size()) - 1;
      chat = behind(chat, Rig::prompt_of(7, 100 + turn));
      EXPECT_EQ(cached(rig.complete(chat, 31 + turn)), computed);
    }
    EXPECT_LT(rig.scheduler->stats().steps, rig.scheduler->stats().generated_tokens);
    rig.run_to_end();
  }
}

// As seldom as without guesses, and in a place that no other row comes by.
TEST(RecurrentStates, AreKeptOnTheWayOfAnAnswerThatIsGuessed) {
  SchedulerOptions options = with_states(32);
  options.draft_tokens = 5;
  options.draft_always = true;
  Rig rig(options);
  const auto prompt = Rig::prompt_of(40, 1);
  const Client& client = rig.complete(prompt, 120);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().blocks_free == rig.scheduler->stats().blocks_total; }));
  EXPECT_EQ(rig.scheduler->stats().states_cached, 6U) << "32 and 39 of the prompt, behind 64, 96 and 128, and the end";
  auto edited = behind(prompt, client.tokens);
  edited[125] = 998;
  EXPECT_GT(cached(rig.complete(edited, 5)), 96);
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
