// A client that does not read: its sequence pauses, then loses its blocks, then is ended; nobody else notices.
#include "sched/rig.h"

#include <chrono>

namespace braid::sched::test {
namespace {

SchedulerOptions impatient(std::chrono::milliseconds park, std::chrono::milliseconds drop) {
  SchedulerOptions options = Rig::small_options();
  options.stream_capacity = 6;
  options.stall_park = park;
  options.stall_drop = drop;
  return options;
}

constexpr std::chrono::hours kNever{1};

TEST(SlowReader, IsParkedAndGoesOnExactly) {
  for (const bool prefix_cache : {true, false}) {
    SchedulerOptions options = impatient(std::chrono::milliseconds(1), kNever);
    options.prefix_cache = prefix_cache;
    Rig rig(options);
    Client& slow = rig.submit(5, 60);
    ASSERT_TRUE(rig.run_until([&] { return rig.phase(slow) == SequencePhase::kParked; }));
    EngineStats stats = rig.scheduler->stats();
    EXPECT_EQ(stats.blocks_free, stats.blocks_total);
    EXPECT_EQ(stats.parked, 1U);
    EXPECT_EQ(stats.stalled, 0U);
    Client& quick = rig.start(9, 60);
    ASSERT_TRUE(rig.run_until([&] { return quick.finished(); }));
    ASSERT_TRUE(rig.run_until([&] { return slow.take(), slow.finished(); }));
    rig.run_to_end();
    rig.expect_right(quick);
    rig.expect_right(slow);
    stats = rig.scheduler->stats();
    EXPECT_GE(stats.stalls_total, stats.parks_total);
    EXPECT_GE(stats.parks_total, 1U);
    EXPECT_EQ(stats.slow_readers_dropped, 0U);
  }
}

// What is still to come for the first one, its end, is far away.
TEST(SlowReader, EachIsParkedInItsOwnTime) {
  Rig rig(impatient(std::chrono::milliseconds(1), kNever));
  Client& first = rig.submit(5, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(first) == SequencePhase::kParked; }));
  Client& second = rig.submit(5, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(second) == SequencePhase::kParked; }));
  while (first.take()) {
  }
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().parks_total == 3; })) << "stalled a second time";
  EXPECT_EQ(rig.phase(first), SequencePhase::kParked);
  rig.scheduler->abort_remaining({ErrorCode::kDraining, "over", {}});
  rig.run_to_end();
}

TEST(SlowReader, IsEndedInTheEndWithAReason) {
  Rig rig(impatient(std::chrono::milliseconds(1), std::chrono::milliseconds(2)));
  Client& slow = rig.submit(5, 60);
  Client& quick = rig.start(9, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().slow_readers_dropped == 1; }));
  while (slow.take()) {
  }
  ASSERT_TRUE(slow.finished());
  EXPECT_EQ(slow.tokens.size(), 6U) << "what its stream holds is still delivered";
  EXPECT_EQ(slow.finish->reason, FinishReason::kCancelled);
  ASSERT_TRUE(slow.finish->error.has_value());
  EXPECT_NE(slow.finish->error->message.find("has read nothing for"), std::string::npos);
  rig.run_to_end();
  rig.expect_right(quick);
}

TEST(SlowReader, MayBeCancelledWhileParked) {
  Rig rig(impatient(std::chrono::milliseconds(0), kNever));
  Client& slow = rig.submit(5, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(slow) == SequencePhase::kParked; }));
  slow.ticket.reset();
  rig.run_to_end();
  EXPECT_EQ(rig.scheduler->stats().cancel_to_free_steps[0], 1U);
}

TEST(SlowReader, EndsWithTheServer) {
  Rig rig(impatient(std::chrono::milliseconds(0), kNever));
  Client& slow = rig.submit(5, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(slow) == SequencePhase::kParked; }));
  rig.scheduler->abort_remaining({ErrorCode::kDraining, "over", {}});
  rig.run_to_end();
  slow.take();
  EXPECT_EQ(slow.finish->reason, FinishReason::kCancelled);
}

}  // namespace
}  // namespace braid::sched::test
