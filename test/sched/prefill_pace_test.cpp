#include "sched/prefill_pace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace braid::sched {
namespace {

constexpr double kSlice = 0.05;

// A machine: what a step costs on it, and by how much its times scatter (a standard deviation, as a part of them).
struct Machine {
  std::string name;
  double step = 0.0;
  double row = 0.0;
  double token = 0.0;
  double decode_read = 0.0;
  double prefill_read = 0.0;
  double prefill_met = 0.0;
  double scatter = 0.0;
  std::int32_t grain = 1;  // rows are computed by so many

  double seconds(const StepShape& shape) const {
    const std::int32_t rows = shape.decode_rows + shape.prefill_tokens;
    const std::int32_t computed = (rows + grain - 1) / grain * grain;
    return step + row * shape.decode_rows + token * (computed - shape.decode_rows) + decode_read * shape.decode_read +
           prefill_read * shape.prefill_read + prefill_met * shape.prefill_met;
  }
};

StepShape decodes(std::int32_t rows, std::int32_t position = 60) {
  StepShape shape;
  for (std::int32_t i = 0; i < rows; ++i) shape.add_decode(position);
  return shape;
}

// Runs steps on a machine as the scheduler would.
class Simulation {
 public:
  Simulation(PrefillPace& pace, const Machine& machine) : pace_(pace), machine_(machine) {}

  // What prefill added to the step.
  double step(const StepShape& rows, std::int32_t position = 0, std::int32_t tokens = 0) {
    StepShape shape = rows;
    if (tokens > 0) shape.add_prefill(position, tokens);
    const double seconds = machine_.seconds(shape) * std::exp(machine_.scatter * normal_(random_));
    pace_.observe(shape, seconds);
    seconds_ += seconds;
    return seconds - machine_.seconds(rows);
  }

  // `rows` short prompts come at once, and decode for a while.
  void warm(std::int32_t rows) {
    for (std::int32_t begun = 0; begun < rows;) {
      StepShape shape = decodes(begun);
      while (begun < rows) {
        const std::int32_t tokens = std::min(40, pace_.slice_tokens(shape, 0));
        if (tokens == 0) break;
        shape.add_prefill(0, tokens);
        ++begun;
      }
      pace_.observe(shape, machine_.seconds(shape) * std::exp(machine_.scatter * normal_(random_)));
    }
    for (int i = 0; i < 10; ++i) step(decodes(rows));
  }

  // Slices of an endless prompt without context, and the size at which they settle.
  std::int32_t settle(std::int32_t rows, int steps = 40) {
    std::int32_t last = 0;
    for (int i = 0; i < steps; ++i) {
      const std::int32_t tokens = pace_.slice_tokens(decodes(rows), 0);
      step(decodes(rows), 0, tokens);
      if (tokens > 0) last = tokens;  // now and then a step goes without
    }
    return last;
  }

  double seconds() const { return seconds_; }

 private:
  PrefillPace& pace_;
  Machine machine_;
  std::mt19937 random_{7};
  std::normal_distribution<> normal_;
  double seconds_ = 0.0;
};

const Machine kSteady{.name = "steady", .step = 0.010, .row = 0.0005, .token = 0.0001};

TEST(PrefillPace, StartsSmall) {
  const PrefillPace pace(kSlice);
  EXPECT_EQ(pace.slice_tokens({}, 0), 64);
  EXPECT_EQ(pace.slice_tokens(decodes(100), 0), 64);
  StepShape shape;
  shape.add_prefill(0, 40);
  EXPECT_EQ(pace.slice_tokens(shape, 0), 24) << "what others take of the step is gone";
}

TEST(PrefillPace, FindsTheSliceThatTakesItsTime) {
  PrefillPace pace(kSlice);
  EXPECT_NEAR(Simulation(pace, kSteady).settle(32), 450, 60);
}

TEST(PrefillPace, NeverOvershootsOnItsWayUp) {
  PrefillPace pace(kSlice);
  Simulation run(pace, kSteady);
  for (int steps = 1; steps < 40; ++steps) EXPECT_LE(run.settle(32, 1), 505);
}

// The step that goes without prefill, for what its time tells, may tell nothing, and so may the next ones.
TEST(PrefillPace, DoesNotWaitForAStepThatTellsSomething) {
  PrefillPace pace(kSlice);
  Simulation run(pace, kSteady);
  run.settle(32);
  const auto wants_decode_alone = [&] { return pace.slice_tokens(decodes(32), 0) == 0; };
  for (int steps = 0; steps < 20 && !wants_decode_alone(); ++steps) run.settle(32, 1);
  ASSERT_TRUE(wants_decode_alone());
  StepShape mixed = decodes(32);
  mixed.add_prefill(0, 100);
  pace.pass_over(mixed);
  EXPECT_TRUE(wants_decode_alone()) << "it was posted before";
  pace.pass_over(decodes(32));
  EXPECT_FALSE(wants_decode_alone());
  run.settle(32, 1);
  EXPECT_TRUE(wants_decode_alone()) << "tried again soon";
}

TEST(PrefillPace, AlwaysMovesOn) {
  PrefillPace pace(kSlice);
  EXPECT_EQ(Simulation(pace, {.name = "hopeless", .token = 10.0}).settle(4), 1);
}

TEST(PrefillPace, FollowsAMachineThatSlowsDown) {
  PrefillPace pace(kSlice);
  Simulation(pace, kSteady).settle(32);
  const Machine slow{.name = "four times slower", .step = 0.040, .row = 0.002, .token = 0.0004};
  EXPECT_LE(Simulation(pace, slow).settle(32, 6), 130);
  EXPECT_GE(Simulation(pace, slow).settle(32, 40), 60);
}

// As with growing contexts. An estimate that blamed prefill would shrink slices, and shorter ones would look as slow: for good.
TEST(PrefillPace, IsNotMisledWhenOnlyDecodingBecomesSlower) {
  PrefillPace pace(kSlice);
  Simulation(pace, kSteady).settle(32);
  Machine slower = kSteady;
  slower.row = 0.004;
  EXPECT_GE(Simulation(pace, slower).settle(32, 100), 64);
  EXPECT_LE(Simulation(pace, slower).settle(32, 60), 505);
}

TEST(PrefillPace, LeavesAStepToDecodingNowAndThen) {
  PrefillPace pace(kSlice);
  Simulation run(pace, kSteady);
  int without = 0;
  for (int i = 0; i < 100; ++i) without += run.settle(32, 1) == 0 ? 1 : 0;
  EXPECT_GE(without, 4);
  EXPECT_LE(without, 7);
}

TEST(PrefillPace, TakesMoreWhenNobodyDecodes) {
  PrefillPace pace(kSlice);
  Simulation(pace, kSteady).settle(32);
  EXPECT_GT(pace.slice_tokens({}, 0), pace.slice_tokens(decodes(1), 0) * 3 / 2);
}

TEST(PrefillPace, ShortPromptsDoNotMisleadIt) {
  PrefillPace pace(kSlice);
  Simulation run(pace, kSteady);
  run.settle(32);
  for (int i = 0; i < 20; ++i) run.step({}, 0, 2);
  EXPECT_GT(pace.slice_tokens(decodes(32), 0), 300);
}

TEST(PrefillPace, OneStrayStepChangesLittle) {
  PrefillPace pace(kSlice);
  Simulation run(pace, kSteady);
  const std::int32_t before = run.settle(32);
  StepShape shape = decodes(32);
  shape.add_prefill(0, before);
  pace.observe(shape, 20 * kSteady.seconds(shape));
  EXPECT_GT(pace.slice_tokens(decodes(32), 0), before / 2);
}

TEST(PrefillPace, IgnoresStepsWithoutTime) {
  PrefillPace pace(kSlice);
  StepShape shape;
  shape.add_prefill(0, 64);
  pace.observe(shape, 0.0);
  EXPECT_EQ(pace.slice_tokens(decodes(1), 0), 64);
}

// The best that slices of one size can do for a prompt of `tokens` beside 32 rows, if none of them may add more than its time.
double best_fixed(const Machine& machine, std::int32_t tokens) {
  double best = 1e9;
  for (std::int32_t slice = 1; slice <= tokens; slice = slice * 5 / 4 + 1) {
    double seconds = 0.0;
    bool keeps = true;
    for (std::int32_t position = 0; position < tokens && keeps; position += slice) {
      StepShape shape = decodes(32);
      shape.add_prefill(position, std::min(slice, tokens - position));
      keeps = machine.seconds(shape) - machine.seconds(decodes(32)) <= kSlice;
      seconds += machine.seconds(shape);
    }
    if (keeps) best = std::min(best, seconds);
  }
  return best;
}

class LongPrompt : public testing::TestWithParam<Machine> {};

// It joins 32 streams on machines of all kinds: hardly a step is longer than it may be, none by much, and the prompt is computed at least
// nearly as soon as by the best slices of one size, which know the machine beforehand.
TEST_P(LongPrompt, LeavesTheStreamsTheirTimeAndLosesLittle) {
  constexpr std::int32_t kTokens = 8000;
  PrefillPace pace(kSlice);
  Simulation warming(pace, GetParam());
  warming.warm(32);
  Simulation run(pace, GetParam());
  int steps = 0;
  int late = 0;
  for (std::int32_t position = 0; position < kTokens; ++steps) {
    const std::int32_t tokens = std::min(kTokens - position, pace.slice_tokens(decodes(32), position));
    const double added = run.step(decodes(32), position, tokens);  // of no tokens now and then
    late += added > kSlice ? 1 : 0;
    EXPECT_LE(added, 1.3 * kSlice) << tokens << " tokens at " << position;
    position += tokens;
  }
  EXPECT_LE(late, 1 + steps / 6) << "of " << steps;
  EXPECT_LE(run.seconds(), 1.15 * best_fixed(GetParam(), kTokens));
}

const std::vector<Machine> kMachines = {
    {"Small", 6e-3, 0.35e-3, 0.2e-3, 0.2e-6, 0.0, 0.08e-6},
    {"SmallScattered", 6e-3, 0.35e-3, 0.2e-3, 0.2e-6, 0.0, 0.08e-6, 0.05, 16},
    {"ContextsToRead", 6e-3, 0.35e-3, 0.2e-3, 0.2e-6, 3e-6, 0.05e-6, 0.03, 16},
    {"NoAttention", 10e-3, 0.5e-3, 0.1e-3, 0.0, 0.0, 0.0, 0.05},
    {"MuchAttention", 3e-3, 0.1e-3, 0.05e-3, 1e-6, 0.0, 0.1e-6, 0.05, 16},
    {"Fast", 0.3e-3, 0.02e-3, 0.02e-3, 0.1e-6, 0.0, 0.01e-6, 0.05, 16},
    {"Slow", 60e-3, 0.5e-3, 1.5e-3, 1e-6, 0.0, 0.1e-6, 0.03},
};

INSTANTIATE_TEST_SUITE_P(Machines, LongPrompt, testing::ValuesIn(kMachines), [](const auto& machine) { return machine.param.name; });

// Contexts of which reading alone takes longer than a slice may: tokens get their part all the same.
TEST(PrefillPace, KeepsADeepPromptMoving) {
  PrefillPace pace(kSlice);
  Simulation run(pace,
                 {.name = "slow memory", .step = 6e-3, .row = 0.35e-3, .token = 0.2e-3, .prefill_read = 12e-6, .prefill_met = 0.05e-6});
  run.warm(32);
  int steps = 0;
  for (std::int32_t position = 0; position < 8000; ++steps) {
    const std::int32_t tokens = std::min(8000 - position, pace.slice_tokens(decodes(32), position));
    run.step(decodes(32), position, tokens);
    position += tokens;
  }
  EXPECT_LE(steps, 500);
}

TEST(PrefillPace, WithoutATargetRowsAreFree) {
  const PrefillPace pace(kSlice);
  EXPECT_EQ(pace.most_rows(256), 256U);
}

// Steps of 4 to 8 rows, a little prefill among them, as while requests come and go.
void come_and_go(PrefillPace& pace, const Machine& machine, int steps) {
  Simulation run(pace, machine);
  for (int i = 0; i < steps; ++i) run.step(decodes(4 + i % 5), 0, i % 7 == 0 ? std::min(40, pace.slice_tokens(decodes(4 + i % 5), 0)) : 0);
}

TEST(LatencyTarget, LearnsHowManyRowsFit) {
  PrefillPace pace(kSlice, 20e-3);
  EXPECT_EQ(pace.most_rows(256), 8U) << "before anything was measured";
  come_and_go(pace, {.name = "steady", .step = 4e-3, .row = 0.5e-3, .token = 0.05e-3}, 60);
  EXPECT_NEAR(static_cast<double>(pace.most_rows(256)), 32.0, 3.0) << "(20 - 4) / 0.5";
  EXPECT_EQ(pace.most_rows(16), 16U);
  EXPECT_LT(pace.slice_tokens(decodes(28), 0), pace.slice_tokens(decodes(8), 0));
  EXPECT_GE(pace.slice_tokens(decodes(100), 0), 1) << "a little is always left";
}

TEST(LatencyTarget, FollowsAChange) {
  PrefillPace pace(kSlice, 20e-3);
  come_and_go(pace, {.name = "steady", .step = 4e-3, .row = 0.5e-3, .token = 0.05e-3}, 60);
  come_and_go(pace, {.name = "slower", .step = 4e-3, .row = 1.5e-3, .token = 0.05e-3}, 200);
  EXPECT_NEAR(static_cast<double>(pace.most_rows(256)), 10.0, 2.0);
}

}  // namespace
}  // namespace braid::sched
