// The controller of rows and slices, on the fake model's clock: nothing here depends on how long the test takes.
#include "sched/rig.h"

#include <algorithm>

namespace braid::sched::test {
namespace {

struct Outcome {
  double p95 = 0.0;         // seconds between two tokens
  double throughput = 0.0;  // tokens a second, of the fake's time
};

// What a server of these options has done before two hundred requests come at once.
using Before = void (*)(Rig& rig);

void decode_six(Rig& rig) {
  for (int i = 0; i < 6; ++i) rig.start(40, 100);
  EXPECT_TRUE(rig.run_until([&] { return rig.clients[5]->tokens.size() >= 20; }));
}

// As at the start of a server.
void warm_up(Rig& rig) { rig.complete(Rig::prompt_of(64, 7), 4); }

Outcome run_step_load(std::int32_t target_itl_ms, std::int32_t max_batch, std::int32_t slice_ms, Before before = decode_six,
                      std::int32_t answer = 60) {
  SchedulerOptions options = Rig::small_options();
  options.target_itl_ms = target_itl_ms;
  options.max_batch = max_batch;
  options.max_batch_tokens = 4096;
  options.prefill_slice_ms = slice_ms;
  options.blocks = 16384;
  options.stream_capacity = 512;
  FakeModelOptions model;
  model.step_seconds = 4e-3;
  model.decode_row_seconds = 0.5e-3;
  model.prefill_token_seconds = 0.05e-3;
  Rig rig(options, model);
  before(rig);
  for (int i = 0; i < 200; ++i) rig.start(40, answer);
  rig.run_to_end();
  std::vector<double> gaps;
  double seconds = 0.0;
  double tokens = 0.0;
  for (const StepRecord& step : rig.model.steps()) {
    gaps.insert(gaps.end(), static_cast<std::size_t>(step.decode_rows), step.seconds);
    seconds += step.seconds;
    tokens += step.decode_rows;
  }
  std::ranges::sort(gaps);
  return {gaps[gaps.size() * 95 / 100], tokens / seconds};
}

TEST(LatencyTarget, KeepsAStepLoadNearTheTargetAtTheBestFixedGoodput) {
  const Outcome controlled = run_step_load(20, 256, 50);
  EXPECT_LE(controlled.p95, 1.2 * 20e-3);
  double best = 0.0;
  for (const std::int32_t rows : {8, 16, 24, 32, 48}) {
    for (const std::int32_t slice : {2, 5, 10}) {
      const Outcome fixed = run_step_load(0, rows, slice);
      if (fixed.p95 <= 1.2 * 20e-3) best = std::max(best, fixed.throughput);
    }
  }
  EXPECT_GT(best, 0.0);
  EXPECT_GE(controlled.throughput, 0.95 * best);
}

// All it knows is what its warm-up took. Who is let in too early decodes to his end, so long answers tell.
TEST(LatencyTarget, HoldsForALoadThatComesWhenLittleWasMeasured) { EXPECT_LE(run_step_load(20, 256, 50, warm_up, 400).p95, 1.2 * 20e-3); }

// Nothing is measured of rows where none decodes, but there is nothing to bound either.
TEST(LatencyTarget, AnswersOfOneTokenAreNotBounded) {
  SchedulerOptions options = Rig::small_options();
  options.target_itl_ms = 20;
  options.max_batch = 64;
  options.blocks = 1024;
  Rig rig(options);
  for (int i = 0; i < 200; ++i) rig.start(4, 1);
  rig.run_to_end();
  std::size_t most = 0;
  for (const StepRecord& step : rig.model.steps()) most = std::max(most, step.rows.size());
  EXPECT_GT(most, 16U);
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

}  // namespace
}  // namespace braid::sched::test
