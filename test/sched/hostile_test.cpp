// What clients, steps and disks do at the worst moment.
#include "sched/disk_rig.h"

namespace braid::sched::test {
namespace {

TEST(Hostile, AnIdThatRunsAlreadyIsRefused) {
  Rig rig;
  rig.model.hold();
  Client& first = rig.start(4, 10);
  GenerationRequest request;
  request.id = first.id;
  request.prompt = {1, 2, 3};
  request.stop.max_tokens = 5;
  const auto second = rig.scheduler->submit(request);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(second.error().param, "id");
  EXPECT_TRUE(rig.scheduler->cancel(first.id));
  EXPECT_TRUE(rig.scheduler->submit(request).has_value()) << "free again";
  rig.model.release();
  rig.run_to_end();
}

// The buffers of what was to be saved hold what they held before: a record that another text left there.
TEST(Hostile, WhatAFailedStepWasToSaveIsNotWritten) {
  const Folder folder;
  Server server(folder.path(), tier_options(20));
  const auto prompt = Rig::prompt_of(41, 1);
  server.cached(prompt);
  server.settle();
  server.rig->model.fail_next("no luck");
  Client& evicts = server.rig->submit(Rig::prompt_of(70, 2), 3);  // its first step saves what it evicts
  ASSERT_TRUE(server.rig->run_until([&] { return evicts.take(), evicts.finished(); }));
  server.rig->expect_right(evicts);
  server.settle();
  EXPECT_EQ(server.store->stats().writes, 0U);
  EXPECT_LT(server.cached(prompt), 40) << "what was evicted is lost";
  server.rig->run_to_end();
}

TEST(Hostile, NobodyWaitsForAWorseLeader) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 20;
  Rig rig(options);
  rig.model.hold();
  const auto submit = [&](std::int32_t priority) -> Client& {
    GenerationRequest request;
    request.prompt = Rig::prompt_of(100, 1);
    request.stop.max_tokens = 3;
    request.priority = priority;
    return rig.submit(std::move(request));
  };
  Client& worse = submit(5);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(worse) == SequencePhase::kPrefill; }));
  Client& better = submit(-5);
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 1; }));
  EXPECT_EQ(rig.phase(better), SequencePhase::kPrefill);
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return worse.take(), better.take(), worse.finished() && better.finished(); }));
  rig.expect_right(worse);
  rig.expect_right(better);
  rig.run_to_end();
}

// The pool is full of others' cached blocks, and of blocks that a stalled reader holds: both go before anybody fails.
TEST(Hostile, AnExhaustedPoolEvictsAndTriesAgain) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 20;
  options.stream_capacity = 4;
  Rig rig(options);
  rig.complete(Rig::prompt_of(39, 1), 1);
  Client& silent = rig.submit(Rig::prompt_of(20, 2), 40);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(silent) == SequencePhase::kStalled; }));
  rig.complete(Rig::prompt_of(78, 3), 2);
  EXPECT_GT(rig.scheduler->stats().cache_evictions, 0U);
  ASSERT_TRUE(rig.run_until([&] { return silent.take(), silent.finished(); }));
  rig.expect_right(silent);
  rig.run_to_end();
}

// Both kinds of ends at once: cancelled while their step runs, and that step throws. Nothing of either stays.
TEST(Hostile, CancelledInAStepThatThrowsLeavesNoMark) {
  Rig rig;
  for (int round = 0; round < 3; ++round) {
    rig.model.hold();
    Client& cancelled = rig.submit(9, 20);
    Client& failed = rig.submit(9, 20);
    ASSERT_TRUE(rig.run_until([&] { return rig.phase(failed) == SequencePhase::kDecode; }));
    rig.scheduler->cancel(cancelled.id);
    rig.model.fail_next("no luck");
    rig.model.release();
    ASSERT_TRUE(rig.run_until([&] { return failed.take(), failed.finished(); }));
    rig.expect_right(failed);
    cancelled.take();
    ASSERT_TRUE(cancelled.finished());
    EXPECT_EQ(cancelled.finish->reason, FinishReason::kCancelled);
    for (int i = 0; i < 10; ++i) rig.complete(Rig::prompt_of(9, i), 5);  // more than there are slots
    rig.expect_nothing_held();
  }
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
