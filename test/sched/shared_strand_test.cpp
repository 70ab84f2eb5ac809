// Several engines on one compute strand.
#include "sched/compute_strand.h"
#include "sched/rig.h"
#include "sched/strand_lane.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <semaphore>
#include <vector>

namespace braid::sched::test {
namespace {

// One of them, with a client that reads to the end.
struct SharedEngine {
  FakeModel model;
  Scheduler scheduler;
  Client client;

  SharedEngine(boost::asio::io_context& loop, ComputeStrand& strand, const FakeModelOptions& model_options,
               const SchedulerOptions& options = Rig::small_options())
      : model(Rig::fitting(model_options, options)), scheduler(loop, strand, model, options) {}

  void start(boost::asio::io_context& loop, std::int32_t prompt, std::int32_t tokens) {
    client.prompt = Rig::prompt_of(prompt, 1);
    client.stop.max_tokens = tokens;
    GenerationRequest request;
    request.prompt = client.prompt;
    request.stop = client.stop;
    Result<Ticket> ticket = scheduler.submit(std::move(request));
    ASSERT_TRUE(ticket.has_value());
    client.ticket = std::move(*ticket);
    boost::asio::co_spawn(loop, read_to_end(client), boost::asio::detached);
  }

  double strand_seconds() const {
    const EngineStats stats = scheduler.stats();
    return stats.prefill_seconds + stats.decode_seconds;
  }

  void expect_right() const {
    ASSERT_TRUE(client.finished());
    EXPECT_EQ(client.tokens, model.expected(client.prompt, client.stop));
    EXPECT_TRUE(model.violations().empty());
  }
};

template <class Condition>
bool run_until(boost::asio::io_context& loop, Condition reached) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);  // which only a hang takes
  loop.restart();
  while (!reached()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (loop.run_one_for(std::chrono::seconds(1)) == 0 && loop.stopped()) return reached();
  }
  return true;
}

TEST(SharedStrand, EqualLoadHasEqualStrandTimeWhateverTheSteps) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  SharedEngine quick(loop, strand, {.step_seconds = 1e-3});
  SharedEngine slow(loop, strand, {.step_seconds = 7e-3});
  quick.start(loop, 16, 480);
  slow.start(loop, 16, 480);
  ASSERT_TRUE(run_until(loop, [&] { return quick.client.finished(); }));
  EXPECT_NEAR(slow.strand_seconds() / quick.strand_seconds(), 1.0, 0.1);
  ASSERT_TRUE(run_until(loop, [&] { return slow.client.finished(); }));
  quick.expect_right();
  slow.expect_right();
}

TEST(SharedStrand, EqualEnginesHaveEqualTokenRates) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  std::vector<std::unique_ptr<SharedEngine>> engines;
  for (int i = 0; i < 3; ++i) {
    engines.push_back(std::make_unique<SharedEngine>(loop, strand, FakeModelOptions{.step_seconds = 2e-3}));
    engines.back()->start(loop, 16, 400);
  }
  ASSERT_TRUE(run_until(loop, [&] { return engines[0]->client.finished(); }));
  for (const auto& engine : engines) EXPECT_NEAR(static_cast<double>(engine->client.tokens.size()), 400.0, 20.0);
  ASSERT_TRUE(run_until(loop, [&] { return std::ranges::all_of(engines, [](const auto& one) { return one->client.finished(); }); }));
  for (const auto& engine : engines) engine->expect_right();
}

TEST(SharedStrand, AnIdleOneTakesNoStep) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  SharedEngine busy(loop, strand, {.step_seconds = 1e-3, .prefill_token_seconds = 1e-4});
  SharedEngine idle(loop, strand, {});
  Rig alone(Rig::small_options(), {.step_seconds = 1e-3, .prefill_token_seconds = 1e-4});
  busy.start(loop, 400, 50);
  ASSERT_TRUE(run_until(loop, [&] { return busy.client.finished(); }));
  busy.expect_right();
  alone.complete(busy.client.prompt, 50);
  EXPECT_TRUE(idle.model.steps().empty());
  EXPECT_EQ(busy.scheduler.stats().steps, alone.scheduler->stats().steps) << "it goes on in pieces as large as alone";
}

TEST(SharedStrand, PrefillsOfAllTogetherAddNoMoreThanASlice) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  SchedulerOptions options = Rig::small_options();
  options.prefill_slice_ms = 20;
  const FakeModelOptions model{.step_seconds = 1e-3, .prefill_token_seconds = 1e-3};
  SharedEngine decoding(loop, strand, {.step_seconds = 1e-3}, options);
  SharedEngine first(loop, strand, model, options);
  SharedEngine second(loop, strand, model, options);
  // What a prompt token takes they know before they meet.
  for (SharedEngine* engine : {&first, &second}) {
    engine->start(loop, 64, 1);
    ASSERT_TRUE(run_until(loop, [&] { return engine->client.finished(); }));
    engine->client = {};
  }
  decoding.start(loop, 8, 500);
  ASSERT_TRUE(run_until(loop, [&] { return decoding.client.tokens.size() > 4; }));
  const std::size_t before_first = first.model.steps().size();
  const std::size_t before_second = second.model.steps().size();
  first.start(loop, 300, 1);
  second.start(loop, 300, 1);
  ASSERT_TRUE(run_until(loop, [&] { return first.client.finished() && second.client.finished(); }));
  for (const auto& [engine, before] : {std::pair(&first, before_first), std::pair(&second, before_second)}) {
    const std::vector<StepRecord> steps = engine->model.steps();
    // The first two may have been planned while fewer were there.
    for (std::size_t i = before + 2; i < steps.size(); ++i) EXPECT_LE(steps[i].prefill_tokens, 10) << "step " << i;
  }
}

TEST(SharedStrand, OneThatGoesLeavesTheOthersTheirAnswers) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  SharedEngine stays(loop, strand, {});
  auto goes = std::make_unique<SharedEngine>(loop, strand, FakeModelOptions());
  stays.start(loop, 16, 300);
  goes->start(loop, 16, 300);
  ASSERT_TRUE(run_until(loop, [&] { return stays.client.tokens.size() > 20 && goes->client.tokens.size() > 20; }));
  goes->client.ticket.reset();
  goes->scheduler.abort_remaining({ErrorCode::kDraining, "the model is unloaded", {}});
  ASSERT_TRUE(run_until(loop, [&, steps = stays.scheduler.stats().steps] { return stays.scheduler.stats().steps > steps + 8; }));
  goes.reset();
  ASSERT_TRUE(run_until(loop, [&] { return stays.client.finished(); }));
  stays.expect_right();
}

class Held final : public step::StepExecutor {
 public:
  std::counting_semaphore<> running{0};
  std::counting_semaphore<> gate{0};
  int executed = 0;
  void execute(const step::StepPlan&, step::StepResult&) override {
    ++executed;
    running.release();
    gate.acquire();
  }
};

TEST(SharedStrand, ALaneThatEndsBeforeItsTurnIsNeverRun) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  Held running;
  Held waiting;
  int turns = 0;
  StrandLane stays(
      strand, running, [] {}, [&] { ++turns; });
  auto goes = std::make_unique<StrandLane>(
      strand, waiting, [] {}, [] {});
  const auto post = [](StrandLane& lane) {
    ASSERT_TRUE(lane.take_turn());
    lane.next_plan();
    lane.post();
  };
  post(stays);
  running.running.acquire();
  post(*goes);
  EXPECT_FALSE(stays.take_turn()) << "two are out in all";
  EXPECT_EQ(stays.sharers(), 2);
  goes.reset();
  EXPECT_EQ(stays.sharers(), 1);
  running.gate.release();
  ASSERT_TRUE(run_until(loop, [&] { return turns > 0; })) << "whoever waited for a turn is told";
  EXPECT_EQ(waiting.executed, 0);
  stays.pop();
  loop.restart();
  loop.run();
  EXPECT_TRUE(strand.idle());
  running.gate.release(2);
  post(stays);
  loop.restart();
  loop.run();
  EXPECT_NE(stays.returned(), nullptr);
}

}  // namespace
}  // namespace braid::sched::test
