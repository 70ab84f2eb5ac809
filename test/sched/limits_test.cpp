// What a request that is refused is told, and what the queue says of itself.
#include "sched/rig.h"

namespace braid::sched::test {
namespace {

GenerationRequest request_with(std::int32_t prompt, std::int32_t max_tokens, std::int32_t priority = 0) {
  GenerationRequest request;
  request.prompt = Rig::prompt_of(prompt, 1);
  request.stop.max_tokens = max_tokens;
  request.priority = priority;
  return request;
}

// A step takes 10 ms and a prompt token 1 ms: one at a time, each of 20 tokens, so 100 tokens a second.
TEST(Limits, RefusalSaysWhenAndWhere) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 1;
  options.max_waiting = 50;
  FakeModelOptions model;
  model.step_seconds = 10e-3;
  model.prefill_token_seconds = 1e-3;
  Rig rig(options, model);
  for (int i = 0; i < 20; ++i) rig.complete(Rig::prompt_of(100, i), 20);
  rig.model.hold();
  Client& running = rig.submit(100, 20);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(running) == SequencePhase::kPrefill || rig.phase(running) == SequencePhase::kDecode; }));
  for (int i = 0; i < 50; ++i) rig.submit(100, 20);
  const auto refused = rig.scheduler->submit(request_with(4, 4));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(refused.error().queue_position, 51U);
  // 51 prompts of 0.1 s and more, 51 answers of 0.2 s.
  EXPECT_GE(refused.error().retry_after.count(), 13);
  EXPECT_LE(refused.error().retry_after.count(), 30);
  const auto better = rig.scheduler->submit(request_with(4, 4, -100));
  EXPECT_EQ(better.error().queue_position, 1U);
  const auto snapshot = rig.scheduler->sequences(100);
  ASSERT_EQ(snapshot.size(), 51U);
  EXPECT_EQ(snapshot[0].queue_position, 0U);
  EXPECT_EQ(snapshot[1].queue_position, 1U);
  EXPECT_EQ(snapshot[50].queue_position, 50U);
  rig.scheduler->abort_remaining({ErrorCode::kDraining, "over", {}});
  rig.model.release();
  rig.run_to_end();
}

TEST(Limits, QueueIsCountedByPriority) {
  Rig rig;
  rig.model.hold();
  for (int i = 0; i < 8; ++i) rig.submit(4, 20);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().waiting == 0; }));
  for (const std::int32_t priority : {-3, 0, 0, 5, 6, 7}) rig.submit(request_with(4, 4, priority));
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_EQ(stats.waiting_better, 1U);
  EXPECT_EQ(stats.waiting_normal, 2U);
  EXPECT_EQ(stats.waiting_worse, 3U);
  EXPECT_GT(stats.kv_unused_slots, 0U);
  rig.scheduler->abort_remaining({ErrorCode::kDraining, "over", {}});
  rig.model.release();
  rig.run_to_end();
  EXPECT_EQ(rig.scheduler->stats().kv_unused_slots, 0U);
}

TEST(Limits, WaitingTimeIsPartOfUsage) {
  Rig rig;
  const Client& client = rig.complete(Rig::prompt_of(9, 1), 4);
  EXPECT_GT(client.finish->usage.queue_ms, 0.0);
  rig.run_to_end();
  const DurationHistogram wait = rig.scheduler->stats().queue_wait;
  EXPECT_GT(wait.sum, 0.0);
}

}  // namespace
}  // namespace braid::sched::test
