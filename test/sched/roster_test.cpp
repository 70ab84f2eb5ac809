// What the roster counts when blocks run short.
#include "sched/roster.h"

#include "sched/rig.h"
#include "sched/ticket.h"

namespace braid::sched::test {
namespace {

// A roster without steps: its sequences are where the test puts them.
struct Guests : TicketListener {
  explicit Guests(const SchedulerOptions& scheduler_options) : options(scheduler_options), roster(scheduler_options) {}

  Sequence& enqueue(std::int32_t prompt, std::int32_t seed, std::int32_t priority = 0, std::int32_t answer = 100) {
    GenerationRequest request;
    request.prompt = Rig::prompt_of(prompt, seed);
    request.priority = priority;
    Sequence& sequence = roster.enqueue(std::move(request), answer, {});
    tickets.push_back(std::make_unique<SequenceTicket>(*this, 64));
    tickets.back()->attach(sequence);
    return sequence;
  }

  // Instead of its own blocks, the first ones of another.
  static void share(Sequence& sequence, const Sequence& other, std::int32_t blocks) {
    sequence.blocks.clear();
    sequence.blocks[0].adopt(other.blocks[0].first(blocks));
  }

  // Everybody in the batch is after his prompt.
  void decode() {
    for (auto& [rank, sequence] : roster.batch()) {
      sequence.phase = SequencePhase::kDecode;
      sequence.progress.clear();
      sequence.progress.reuse(sequence.blocks.places() * options.block_tokens);
    }
  }

  SchedulerOptions options;
  Roster roster;
  std::vector<std::unique_ptr<SequenceTicket>> tickets;

  void on_abandoned(Sequence&, bool) noexcept override {}
  void on_drained(Sequence&) noexcept override {}
};

SchedulerOptions with_blocks(std::int32_t blocks) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = blocks;
  return options;
}

// Two that leave share their blocks with each other only: these come free, so nobody else has to go.
TEST(Roster, BlocksSharedByThoseWhoLeaveAreCounted) {
  Guests guests(with_blocks(40));
  Roster& roster = guests.roster;
  std::vector<Sequence*> decoding;
  for (std::int32_t i = 0; i < 4; ++i) decoding.push_back(&guests.enqueue(8, i));
  Sequence& one = guests.enqueue(20, 10, 50);
  Sequence& other = guests.enqueue(20, 11, 50);
  roster.admit(0.0);
  ASSERT_EQ(roster.batch().size(), 6U);
  Guests::share(other, one, 5);
  ASSERT_TRUE(decoding[0]->blocks.grow_to(decoding[0]->blocks.places() + roster.pool().free()));
  guests.decode();
  for (auto& [rank, sequence] : roster.batch()) sequence.progress.name();
  for (Sequence* sequence : {&one, &other}) {
    sequence->progress.clear();
    sequence->progress.reuse(19);
  }
  EXPECT_EQ(roster.make_room(), 2);
  EXPECT_EQ(one.phase, SequencePhase::kPreempted);
  EXPECT_EQ(other.phase, SequencePhase::kPreempted);
}

// Nobody gives up blocks for one who lacks some all the same: what two stalled readers share comes free once, and what the batch holds as
// well does not.
TEST(Roster, StalledReadersAreNotParkedInVain) {
  for (const std::int32_t wanted : {26, 27}) {
    Guests guests(with_blocks(32));
    Roster& roster = guests.roster;
    Sequence& decoding = guests.enqueue(20, 1);
    std::vector<Sequence*> stalled;
    for (std::int32_t i = 0; i < 3; ++i) stalled.push_back(&guests.enqueue(20, 2 + i));
    roster.admit(0.0);
    ASSERT_EQ(roster.batch().size(), 4U);
    Guests::share(*stalled[1], *stalled[0], 5);
    Guests::share(*stalled[2], decoding, 5);
    guests.decode();
    for (Sequence* sequence : stalled) roster.stall(*sequence);
    EXPECT_EQ(roster.pool().free(), 22);
    const Sequence& waiting = guests.enqueue(wanted * 4, 9);
    roster.admit(0.0);
    const bool fits = wanted == 26;  // 22 blocks are free and five can be, one of which is the margin of the batch
    EXPECT_EQ(waiting.phase, fits ? SequencePhase::kPrefill : SequencePhase::kWaiting);
    EXPECT_EQ(roster.parks() > 0, fits);
  }
}

SchedulerOptions with_blocks_and_states(std::int32_t blocks, std::int32_t state_blocks) {
  SchedulerOptions options = with_blocks(blocks);
  options.state_blocks = state_blocks;
  return options;
}

// A roster with two sequences that decode; the second one has checkpoints behind 20 and 32 of its 40 positions.
struct TwoWithStates {
  explicit TwoWithStates(const SchedulerOptions& options, std::int32_t first_answer = 100, std::int32_t other_answer = 100)
      : guests(options) {
    Roster& roster = guests.roster;
    first = &guests.enqueue(8, 1, 0, first_answer);
    other = &guests.enqueue(40, 2, 0, other_answer);
    roster.admit(0.0);
    EXPECT_EQ(roster.batch().size(), 2U);
    guests.decode();
    for (const std::int32_t end : {20, 32}) other->state->copies.push_back({end, *other->blocks.spare_state()});
    other->progress.clear();
    other->progress.came_back({}, 0, 40);
    roster.publish(*other);
  }

  // The first one has taken all that is free, and needs a block more.
  void want_one() {
    EXPECT_TRUE(first->blocks.grow_to(first->blocks.places() + guests.roster.pool().free()));
    first->progress.clear();
    first->progress.reuse(first->blocks.places() * guests.options.block_tokens);
    guests.roster.make_room();
  }

  Guests guests;
  Sequence* first = nullptr;
  Sequence* other = nullptr;
};

// Who was preempted goes back by its last positions where a block is wanted, and holds the rest: small ones that pass it cannot take that.
TEST(Roster, WhoeverWaitsWithAStateGivesUpNoMoreThanItsLastPositions) {
  TwoWithStates two(with_blocks_and_states(20, 1));
  two.want_one();
  ASSERT_EQ(two.other->phase, SequencePhase::kWaiting);
  EXPECT_EQ(two.other->state->source_end, 32);
  EXPECT_EQ(two.other->blocks.places(), 8);
  two.want_one();
  EXPECT_EQ(two.other->state->source_end, 20);
  EXPECT_EQ(two.other->blocks.places(), 5);
  two.want_one();
  EXPECT_EQ(two.other->held_blocks(), 0) << "there is nothing before that";
}

// It lacks a block, and holds a state that it does not begin with.
TEST(Roster, WhoeverWaitsAloneGivesUpItsEarlierCheckpoint) {
  TwoWithStates two(with_blocks_and_states(40, 3), 100, 1);
  Roster& roster = two.guests.roster;
  two.want_one();
  ASSERT_EQ(two.other->phase, SequencePhase::kWaiting);
  ASSERT_EQ(two.other->state->kept.size(), 1U);
  two.first->ticket = nullptr;
  two.guests.tickets.front()->detach();
  roster.remove(*two.first);
  EXPECT_EQ(roster.resize(18), 18);
  std::vector<std::int32_t> given_back;
  EXPECT_EQ(roster.shrink(given_back), 0);
  EXPECT_EQ(roster.pool().free(), 18 - 8 - 2 * 3);
  roster.admit(0.0);
  EXPECT_EQ(two.other->phase, SequencePhase::kPrefill) << "two blocks of positions and three of its state";
}

// States that were dropped, and are held by somebody who came by them, go before others that can be found.
TEST(Roster, APoolShrinksByWhatNobodyCanFindFirst) {
  SchedulerOptions options = with_blocks_and_states(40, 3);
  options.most_state_blocks = 6;
  TwoWithStates two(options, 1, 1);
  Roster& roster = two.guests.roster;
  two.first->state->copies.push_back({8, *two.first->blocks.spare_state()});
  two.first->progress.clear();
  two.first->progress.came_back({}, 0, 8);
  roster.publish(*two.first);
  EXPECT_EQ(roster.states_dropped(), 1U) << "the one behind 20";
  const std::int32_t held = 2 + 10 + 2 * 3 + 2 * 3;  // positions, a state each, and the checkpoints that are left
  EXPECT_EQ(roster.resize(held), held);
  std::vector<std::int32_t> given_back;
  EXPECT_EQ(roster.shrink(given_back), 0);
  EXPECT_EQ(given_back.size(), 40U - held);
  EXPECT_EQ(two.first->state->kept.size(), 1U);
  EXPECT_EQ(two.other->state->kept.size(), 1U);
}

// Others that pause, are preempted or end take nothing of it any more.
TEST(Roster, WhatSurelyFitsIsBesideThoseWhoRun) {
  const auto fits = [](bool with_others) {
    SchedulerOptions options = with_blocks(45);
    options.state_blocks = 1;
    Guests guests(options);
    Roster& roster = guests.roster;
    guests.enqueue(8, 1);  // runs on
    Sequence& keeps = guests.enqueue(8, 2);
    std::vector<Sequence*> others;
    for (std::int32_t i = 0; with_others && i < 3; ++i) others.push_back(&guests.enqueue(8, 3 + i));
    roster.admit(0.0);
    EXPECT_EQ(roster.batch().size(), 2 + others.size());
    guests.decode();
    if (with_others) {
      roster.stall(*others[0]);
      roster.change_weights(*others[1], {});
      others[2]->ticket = nullptr;
      guests.tickets.back()->detach();
      roster.remove(*others[2]);
    }
    EXPECT_EQ(roster.batch().size(), 2U);
    keeps.state->copies.push_back({8, *keeps.blocks.spare_state()});
    keeps.progress.clear();
    keeps.progress.came_back({}, 0, 8);
    roster.publish(keeps);
    return keeps.state->surely_fits;
  };
  EXPECT_GT(fits(false), 8);
  EXPECT_LT(fits(false), 107) << "all that it will ever hold";
  EXPECT_EQ(fits(true), fits(false));
}

}  // namespace
}  // namespace braid::sched::test
