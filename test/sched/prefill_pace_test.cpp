#include "sched/prefill_pace.h"

#include <gtest/gtest.h>

namespace braid::sched {
namespace {

// A machine whose step takes `base` plus so much a row and a prompt token.
struct Machine {
  double base = 0.0;
  double row = 0.0;
  double token = 0.0;
  double seconds(const StepShape& shape) const { return base + row * shape.decode_rows + token * shape.prefill_tokens; }
};

// Slices of an endless prompt beside `rows` decoding sequences, after some steps without prefill.
std::int32_t settled_slice(PrefillPace& pace, const Machine& machine, std::int32_t rows, int steps = 40) {
  const StepShape decode{rows, 0};
  if (rows > 0) pace.observe(decode, machine.seconds(decode));
  for (int i = 0; i < steps; ++i) {
    const StepShape mixed{rows, pace.slice_tokens(rows)};
    pace.observe(mixed, machine.seconds(mixed));
  }
  return pace.slice_tokens(rows);
}

TEST(PrefillPace, StartsSmall) {
  const PrefillPace pace(0.05);
  EXPECT_EQ(pace.slice_tokens(0), 64);
  EXPECT_EQ(pace.slice_tokens(100), 64);
}

TEST(PrefillPace, FindsTheSliceThatTakesItsTime) {
  PrefillPace pace(0.05);
  EXPECT_NEAR(settled_slice(pace, {0.010, 0.0005, 0.0001}, 32), 500, 25);
}

TEST(PrefillPace, NeverOvershootsOnItsWayUp) {
  PrefillPace pace(0.05);
  const Machine machine{0.010, 0.0005, 0.0001};
  for (int steps = 1; steps < 40; ++steps) EXPECT_LE(settled_slice(pace, machine, 32, 1), 505);
}

TEST(PrefillPace, AlwaysMovesOn) {
  PrefillPace pace(0.05);
  EXPECT_EQ(settled_slice(pace, {0.0, 0.0, 10.0}, 4), 1);
}

TEST(PrefillPace, FollowsAMachineThatSlowsDown) {
  PrefillPace pace(0.05);
  settled_slice(pace, {0.010, 0.0005, 0.0001}, 32);
  EXPECT_NEAR(settled_slice(pace, {0.010, 0.0005, 0.0004}, 32, 6), 125, 10);
}

// As with growing contexts, or beside another program: and while prompts wait, no step without prefill tells.
TEST(PrefillPace, RecoversWhenDecodingBecomesSlower) {
  PrefillPace pace(0.05);
  settled_slice(pace, {0.010, 0.0005, 0.0001}, 32);
  const Machine slower{0.010, 0.008, 0.0001};
  for (int i = 0; i < 200; ++i) {
    const StepShape mixed{32, pace.slice_tokens(32)};
    pace.observe(mixed, slower.seconds(mixed));
  }
  EXPECT_GE(pace.slice_tokens(32), 64) << "in doubt less, but not one token";
  EXPECT_LE(pace.slice_tokens(32), 505);
}

TEST(PrefillPace, TakesMoreWhenNobodyDecodes) {
  PrefillPace pace(0.05);
  settled_slice(pace, {0.0, 0.0, 0.0001}, 0);
  EXPECT_NEAR(pace.slice_tokens(0), 1000, 50);
  EXPECT_NEAR(pace.slice_tokens(1), 500, 25);
}

TEST(PrefillPace, ShortPromptsDoNotMisleadIt) {
  PrefillPace pace(0.05);
  const Machine machine{0.010, 0.0005, 0.0001};
  settled_slice(pace, machine, 32);
  for (int i = 0; i < 20; ++i) pace.observe({0, 2}, machine.seconds({0, 2}));
  EXPECT_GT(pace.slice_tokens(32), 400);
}

TEST(PrefillPace, BorrowsTheDecodeTimeOfOtherBatchSizes) {
  const Machine machine{0.010, 0.0005, 0.0001};
  for (const std::int32_t measured : {4, 200}) {
    PrefillPace pace(0.05);
    pace.observe({measured, 0}, machine.seconds({measured, 0}));
    for (int i = 0; i < 40; ++i) {
      const StepShape mixed{32, pace.slice_tokens(32)};
      pace.observe(mixed, machine.seconds(mixed));
    }
    EXPECT_LE(pace.slice_tokens(32), 505) << "in doubt less";
    EXPECT_GE(pace.slice_tokens(32), 250);
  }
}

TEST(PrefillPace, IgnoresStepsWithoutTime) {
  PrefillPace pace(0.05);
  pace.observe({0, 64}, 0.0);
  EXPECT_EQ(pace.slice_tokens(1), 64);
}

}  // namespace
}  // namespace braid::sched
