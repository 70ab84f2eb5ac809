// What the roster counts when blocks run short.
#include "sched/rig.h"
#include "sched/roster.h"
#include "sched/ticket.h"

namespace braid::sched::test {
namespace {

class NobodyListens final : public TicketListener {
  void on_abandoned(Sequence&, bool) override {}
  void on_drained(Sequence&) override {}
};

// Two that leave share their blocks with each other only: these come free, so nobody else has to go.
TEST(Roster, BlocksSharedByThoseWhoLeaveAreCounted) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 40;
  Roster roster(options);
  NobodyListens nobody;
  std::vector<std::unique_ptr<SequenceTicket>> tickets;
  const auto enqueue = [&](std::int32_t prompt, std::int32_t seed, std::int32_t priority) -> Sequence& {
    Request request;
    request.prompt = Rig::prompt_of(prompt, seed);
    request.priority = priority;
    Sequence& sequence = roster.enqueue(std::move(request), 100, {});
    tickets.push_back(std::make_unique<SequenceTicket>(nobody, 64));
    tickets.back()->attach(sequence);
    return sequence;
  };
  std::vector<Sequence*> decoding;
  for (std::int32_t i = 0; i < 4; ++i) decoding.push_back(&enqueue(8, i, 0));
  Sequence& one = enqueue(20, 10, 50);
  Sequence& other = enqueue(20, 11, 50);
  roster.admit(0.0);
  ASSERT_EQ(roster.batch().size(), 6U);
  other.blocks.clear();
  other.blocks.adopt(one.blocks.first(5));
  ASSERT_TRUE(decoding[0]->blocks.grow_to(decoding[0]->blocks.size() + roster.pool().free()));
  for (auto& [rank, sequence] : roster.batch()) {
    sequence.phase = SequencePhase::kDecode;
    sequence.planned = sequence.blocks.size() * options.block_tokens;
    sequence.in_flight = 1;
  }
  one.planned = other.planned = 19;
  EXPECT_EQ(roster.make_room(), 2);
  EXPECT_EQ(one.phase, SequencePhase::kPreempted);
  EXPECT_EQ(other.phase, SequencePhase::kPreempted);
}

}  // namespace
}  // namespace braid::sched::test
