#include "sched/rig.h"

#include <algorithm>
#include <numeric>
#include <thread>

namespace braid::sched::test {
namespace {

GenerationRequest request_of(std::int32_t prompt_length, std::int32_t max_tokens, std::string id = {}) {
  GenerationRequest request;
  request.id = std::move(id);
  request.prompt = Rig::prompt_of(prompt_length, 1);
  request.stop.max_tokens = max_tokens;
  return request;
}

TEST(Scheduler, OneRequestStreamsItsAnswer) {
  Rig rig;
  Client& client = rig.start(10, 20);
  rig.run_to_end();
  rig.expect_right(client);
  EXPECT_EQ(client.tokens.size(), 20U);
  EXPECT_EQ(client.finish->reason, FinishReason::kLength);
}

TEST(Scheduler, EndOfSequenceIsDecidedOnTheStrand) {
  FakeModelOptions model;
  model.vocab = 10;
  model.eos = 3;
  Rig rig(Rig::small_options(), model);
  for (int i = 0; i < 30; ++i) rig.start(3 + i, 200);
  rig.run_to_end();
  int stopped = 0;
  for (const auto& client : rig.clients) {
    rig.expect_right(*client);
    if (client->finish->reason == FinishReason::kStop) {
      ++stopped;
      EXPECT_EQ(client->tokens.back(), 3) << "the token that stops is delivered";
    }
  }
  EXPECT_GT(stopped, 20);
}

TEST(Scheduler, MaxTokensIsCutToTheRoomInTheContext) {
  Rig rig;
  Client& client = rig.start(500, 1000);
  rig.run_to_end();
  client.stop.max_tokens = 12;
  rig.expect_right(client);
  EXPECT_EQ(client.finish->reason, FinishReason::kLength);
}

TEST(Scheduler, MaxTokensIsCutToWhatTheWholePoolHolds) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 5;  // 20 positions; the last token needs none
  Rig rig(options);
  Client& client = rig.start(18, 100);
  Client& full = rig.start(20, 100);
  rig.run_to_end();
  client.stop.max_tokens = 3;
  rig.expect_right(client);
  full.stop.max_tokens = 1;
  rig.expect_right(full);
}

TEST(Scheduler, RefusesWhatCanNeverRun) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 8;
  Rig rig(options);
  const auto code = [&](GenerationRequest request) { return rig.scheduler->submit(std::move(request)).error().code; };
  EXPECT_EQ(code(request_of(0, 5)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(request_of(5, -1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(request_of(512, 1)), ErrorCode::kContextLength);
  EXPECT_EQ(code(request_of(33, 1)), ErrorCode::kInvalidArgument);
  const Error error = rig.scheduler->submit(request_of(600, 1)).error();
  EXPECT_EQ(error.message, "the prompt has 600 tokens, but the context holds 512, the answer included; shorten the prompt");
  EXPECT_EQ(error.param, "prompt");
  EXPECT_EQ(rig.scheduler->stats().submitted, 0U);
  rig.run_to_end();
}

TEST(Scheduler, QueueIsBounded) {
  SchedulerOptions options = Rig::small_options();
  options.max_waiting = 3;
  Rig rig(options);
  for (int i = 0; i < 3; ++i) rig.start(4, 4);
  EXPECT_EQ(rig.scheduler->submit(request_of(4, 4)).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(rig.scheduler->stats().waiting, 3U);
  EXPECT_EQ(rig.scheduler->stats().refused, 1U);
  const Result<void> too_many = rig.scheduler->check_queue(2, 0);
  EXPECT_EQ(too_many.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(too_many.error().queue_position, 4U);
  EXPECT_EQ(rig.scheduler->stats().refused, 2U);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().waiting == 0; }));
  EXPECT_TRUE(rig.scheduler->check_queue(3, 0));
  EXPECT_EQ(rig.scheduler->check_queue(4, 0).error().code, ErrorCode::kInvalidArgument) << "it never fits";
  EXPECT_EQ(rig.scheduler->stats().refused, 2U);
  rig.start(4, 4);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

TEST(Scheduler, AdmitsInOrderOfSubmission) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 1;
  Rig rig(options);
  for (int i = 0; i < 5; ++i) rig.start(4, 4);
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(rig.run_until([&] { return rig.clients[i]->finished(); }));
    for (std::size_t later = i + 1; later < 5; ++later) EXPECT_FALSE(rig.clients[later]->finished());
  }
  rig.run_to_end();
}

TEST(Scheduler, StepHoldsAllDecodingSequences) {
  Rig rig;
  for (int i = 0; i < 8; ++i) rig.start(4, 50);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 8; }));
  const std::size_t before = rig.model.steps().size() + ComputeStrand::kMaxPosted;
  ASSERT_TRUE(rig.run_until([&] { return rig.model.steps().size() > before + 10; }));
  const auto steps = rig.model.steps();
  for (std::size_t i = before; i < before + 10; ++i) EXPECT_EQ(steps[i].decode_rows, 8);
  rig.run_to_end();
}

TEST(Scheduler, BatchNeverExceedsItsLimits) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 5;
  options.max_batch_tokens = 20;
  Rig rig(options);
  for (int i = 0; i < 40; ++i) rig.start(1 + i * 3, 5 + i % 7);
  rig.run_to_end();
  for (const StepRecord& step : rig.model.steps()) {
    EXPECT_LE(step.rows.size(), 5U);
    EXPECT_LE(step.decode_rows + step.prefill_tokens, 20);
  }
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

TEST(Scheduler, PrefillNeverStarvesDecode) {
  SchedulerOptions options = Rig::small_options();
  options.context_length = 4096;
  FakeModelOptions model;
  model.prefill_token_seconds = 1e-3;
  Rig rig(options, model);
  for (int i = 0; i < 4; ++i) rig.start(4, 120);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 4; }));
  const std::size_t begin = rig.model.steps().size() + ComputeStrand::kMaxPosted;
  Client& large = rig.start(2000, 1);
  ASSERT_TRUE(rig.run_until([&] { return large.finished() || rig.clients[0]->finished(); }));
  EXPECT_FALSE(rig.clients[0]->finished() && rig.clients[0]->tokens.size() < 120U);
  const auto steps = rig.model.steps();
  int mixed = 0;
  for (std::size_t i = begin; i < steps.size() && mixed < 20; ++i) {
    if (steps[i].prefill_tokens == 0) continue;
    ++mixed;
    EXPECT_EQ(steps[i].decode_rows, 4) << "a step with a slice of the prefill also has every decoding sequence";
  }
  EXPECT_GE(mixed, 20);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

TEST(Scheduler, SliceIsBoundedByMeasuredTime) {
  SchedulerOptions options = Rig::small_options();
  options.context_length = 100'000;
  options.block_tokens = 16;
  options.blocks = 10'000;
  options.max_batch_tokens = 8192;
  options.prefill_slice_ms = 50;
  FakeModelOptions model;
  model.step_seconds = 10e-3;
  model.prefill_token_seconds = 0.2e-3;  // 250 tokens in 50 ms
  Rig rig(options, model);
  rig.start(4, 4000);
  ASSERT_TRUE(rig.run_until([&] { return rig.model.steps().size() > 20; }));
  const std::size_t begin = rig.model.steps().size();
  Client& large = rig.start(12'000, 1);
  ASSERT_TRUE(rig.run_until([&] { return large.finished(); }));
  const auto steps = rig.model.steps();
  std::vector<std::int32_t> slices;
  for (std::size_t i = begin; i < steps.size(); ++i) {
    EXPECT_LE(steps[i].prefill_tokens * model.prefill_token_seconds, 0.051);
    if (steps[i].prefill_tokens > 0) slices.push_back(steps[i].prefill_tokens);
  }
  ASSERT_GT(slices.size(), 20U);
  EXPECT_GE(slices[20], 200) << "the bound is used, but for some caution";
  rig.scheduler->abort_remaining({ErrorCode::kDraining, "enough", {}});
  rig.run_to_end();
}

TEST(Scheduler, EqualClientsGetEqualShares) {
  Rig rig;
  for (int i = 0; i < 8; ++i) rig.start(6, 400);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() >= 200; }));
  std::size_t least = 400;
  std::size_t most = 0;
  for (const auto& client : rig.clients) {
    least = std::min(least, client->tokens.size());
    most = std::max(most, client->tokens.size());
  }
  EXPECT_LE(static_cast<double>(most - least), 0.1 * static_cast<double>(most));
  rig.run_to_end();
}

TEST(Scheduler, NextStepIsPostedBeforeThePreviousEnds) {
  Rig rig;
  rig.model.hold();
  rig.start(4, 10);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 1; }));
  // Two steps are out although not one has come back; both run without anything from the loop.
  rig.model.allow(2);
  while (rig.model.steps().size() < 2) std::this_thread::yield();
  EXPECT_EQ(rig.clients[0]->tokens.size(), 0U);
  rig.model.release();
  rig.run_to_end();
  rig.expect_right(*rig.clients[0]);
}

TEST(Scheduler, LooksUpById) {
  Rig rig;
  rig.model.hold();
  Client& client = rig.start(4, 10);
  EXPECT_EQ(rig.scheduler->find(client.id), SequencePhase::kWaiting);
  EXPECT_EQ(rig.scheduler->find("nobody"), std::nullopt);
  EXPECT_EQ(rig.scheduler->submit(request_of(4, 4, client.id)).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->find(client.id) == SequencePhase::kDecode; }));
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return client.finished(); }));
  EXPECT_EQ(rig.scheduler->find(client.id), std::nullopt);
  rig.run_to_end();
}

TEST(Scheduler, StepThatThrowsFailsItsSequencesOnly) {
  Rig rig;
  rig.model.hold();
  Client& victim = rig.start({1, 2, 3, 7777}, 10);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(victim) == SequencePhase::kDecode; }));
  Client& bystander = rig.start(4, 10);
  rig.model.poison(7777);
  rig.model.release();
  rig.run_to_end();
  ASSERT_TRUE(victim.finished());
  EXPECT_EQ(victim.finish->reason, FinishReason::kError);
  ASSERT_TRUE(victim.finish->error.has_value());
  EXPECT_EQ(victim.finish->error->code, ErrorCode::kInternal);
  EXPECT_EQ(victim.finish->error->message, "the model failed in a step: poisoned");
  rig.expect_right(bystander);
}

TEST(Scheduler, WakeInterruptsAWait) {
  Rig rig;
  rig.model.hold();
  Client& client = rig.submit(4, 4);
  int nothing = 0;
  const auto reader = [](Client& reading, int& count) -> boost::asio::awaitable<void> {
    while (!reading.finished()) {
      std::optional<TokenEvent> event = co_await reading.ticket->next();
      if (event) {
        reading.record(*event);
      } else {
        ++count;
      }
    }
  };
  boost::asio::co_spawn(rig.loop, reader(client, nothing), boost::asio::detached);
  rig.loop.poll();  // it waits
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 1; }));
  client.ticket->wake();
  ASSERT_TRUE(rig.run_until([&] { return nothing == 1; }));
  rig.model.release();
  rig.run_to_end();
  EXPECT_EQ(nothing, 1);
  rig.expect_right(client);
}

TEST(Scheduler, StatsCountTheWork) {
  Rig rig;
  for (int i = 0; i < 10; ++i) rig.start(5, 6);
  rig.run_to_end();
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_EQ(stats.submitted, 10U);
  EXPECT_EQ(stats.finished, 10U);
  EXPECT_EQ(stats.cancelled, 0U);
  EXPECT_EQ(stats.prompt_tokens, 50U);
  EXPECT_EQ(stats.generated_tokens, 60U);
  EXPECT_EQ(stats.steps, rig.model.steps().size());
  EXPECT_EQ(stats.step_tokens.sum, 50U + 10 * 5) << "prompts give the first tokens";
  EXPECT_EQ(std::accumulate(stats.step_tokens.counts.begin(), stats.step_tokens.counts.end(), std::uint64_t{0}), stats.steps);
  EXPECT_GT(stats.prefill_seconds, 0.0);
  EXPECT_GT(stats.decode_seconds, 0.0);
}

}  // namespace
}  // namespace braid::sched::test
