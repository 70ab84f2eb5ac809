// How many tokens are guessed: as many as pay by what they bring and what a row takes.
#include "sched/draft_pace.h"

#include "sched/rig.h"

namespace braid::sched::test {
namespace {

// Steps of `step` seconds and `row` more for each row.
StepCost cost_of(double step, double row) {
  StepCost cost;
  for (int i = 0; i < 60; ++i) {
    StepShape shape;
    for (int n = 0; n <= i % 12; ++n) shape.add_decode(100);
    if (i % 5 == 0) shape.add_prefill(0, 64);
    cost.observe(shape, step + row * shape.decode_rows + row * shape.prefill_tokens);
  }
  return cost;
}

StepShape rows(int count) {
  StepShape shape;
  for (int i = 0; i < count; ++i) shape.add_decode(100);
  return shape;
}

DraftHistory history_of(DraftPace& pace, int observations, std::int32_t drafted, std::int32_t accepted) {
  DraftHistory history;
  for (int i = 0; i < observations; ++i) pace.observe(history, drafted, accepted, 0);
  return history;
}

TEST(DraftPace, GuessesFarWhereGuessesAreRightAndRowsCheap) {
  DraftPace pace(8);
  DraftHistory history = history_of(pace, 40, 8, 8);
  pace.begin_step(cost_of(10e-3, 1e-3), rows(1), false);
  EXPECT_EQ(pace.drafts(history, 8), 8);
  EXPECT_EQ(pace.drafts(history, 3), 3) << "as many as there is room for";
}

TEST(DraftPace, GuessesLessTheMoreARowTakesAndTheLessIsRight) {
  DraftPace pace(8);
  DraftHistory history = history_of(pace, 40, 8, 2);
  pace.begin_step(cost_of(10e-3, 1e-3), rows(1), false);
  EXPECT_EQ(pace.drafts(history, 8), 2) << "the third is wrong as a rule";
  DraftHistory wrong = history_of(pace, 40, 2, 0);
  EXPECT_EQ(pace.drafts(wrong, 8), 0);
}

TEST(DraftPace, GuessesNothingInABatchWhoseRowsCostAsMuchAsTokensBring) {
  DraftPace pace(8);
  DraftHistory history = history_of(pace, 60, 4, 3);
  const StepCost cost = cost_of(10e-3, 1e-3);
  pace.begin_step(cost, rows(1), false);
  EXPECT_GE(pace.drafts(history, 8), 3);
  pace.begin_step(cost, rows(200), false);
  for (int step = 0; step < 2000; ++step) ASSERT_EQ(pace.drafts(history, 8), 0) << "nor is it tried: no chance would be enough";
  pace.begin_step(cost, rows(1), true);
  EXPECT_EQ(pace.drafts(history, 8), 0) << "others wait for the machine";
}

// A model's pass takes as long for one sequence as for several, so that it pays less the fewer there are.
TEST(DraftPace, CountsWhatGuessingItselfTakes) {
  DraftPace pace(8);
  const StepCost cost = cost_of(10e-3, 0.1e-3);
  DraftHistory history;
  for (int i = 0; i < 60; ++i) pace.observe(history, 8, 8, 8);
  pace.begin_step(cost, rows(1), false);
  EXPECT_EQ(pace.drafts(history, 8), 8) << "nobody knows yet what that takes";
  for (int i = 0; i < 20; ++i) pace.observe({.seconds = 8 * 1e-3, .passes = 8, .rows = 1});
  EXPECT_EQ(pace.drafts(history, 8), 8) << "a tenth of a step";
  for (int i = 0; i < 60; ++i) pace.observe({.seconds = 8 * 20e-3, .passes = 8, .rows = 1});
  EXPECT_EQ(pace.drafts(history, 8), 0) << "two steps";
  DraftHistory by_text;
  for (int i = 0; i < 60; ++i) pace.observe(by_text, 8, 8, 0);
  EXPECT_EQ(pace.drafts(by_text, 8), 8) << "its guesses come from its text";
  pace.begin_step(cost, rows(30), false);
  for (int i = 0; i < 20; ++i) pace.observe({.seconds = 8 * 2e-3, .passes = 8, .rows = 30});
  EXPECT_GT(pace.drafts(history, 8), 0) << "shared by thirty";
}

// Ever more seldom while that is in vain.
TEST(DraftPace, TriesAgainNowAndThen) {
  DraftPace pace(8);
  DraftHistory history = history_of(pace, 60, 2, 0);
  const StepCost cost = cost_of(2e-3, 1e-3);
  int probes = 0;
  for (int step = 0; step < 2000; ++step) {
    pace.begin_step(cost, rows(1), false);
    if (const std::int32_t drafts = pace.drafts(history, 8); drafts > 0) {
      ++probes;
      pace.observe(history, drafts, 0, 0);
    }
  }
  EXPECT_GE(probes, 4);
  EXPECT_LE(probes, 12);
  for (int step = 0; step < 600; ++step) {
    pace.begin_step(cost, rows(1), false);
    if (const std::int32_t drafts = pace.drafts(history, 8); drafts > 0) pace.observe(history, drafts, drafts, 0);
  }
  pace.begin_step(cost_of(10e-3, 1e-3), rows(1), false);
  EXPECT_GT(pace.drafts(history, 8), 1) << "by now they are right";
}

// Rows that verify take longer than the cost of a row says, so that guesses seem to pay and do not.
TEST(DraftPace, NeverLosesMoreThanAHundredthOfTheTime) {
  constexpr int kRows = 4;
  DraftPace pace(4);
  const StepCost cost = cost_of(10e-3, 1e-3);
  DraftHistory history;
  const double plain = cost.decode_seconds(rows(kRows));
  double seconds = 0.0;
  double tokens = 0.0;
  int guessing = 0;
  for (int step = 0; step < 8000; ++step) {
    pace.begin_step(cost, rows(kRows), false);
    const std::int32_t drafted = pace.drafts(history, 4);
    const std::int32_t accepted = std::min(drafted, step % 5);  // each place is right rather often
    StepShape shape;
    for (int row = 0; row < kRows; ++row) shape.add_decode(100, drafted);
    const double taken = plain + 8e-3 * kRows * drafted;
    pace.observe(history, drafted, accepted, 0);
    pace.settle(cost, shape, kRows, drafted > 0, kRows * (1.0 + accepted), taken);
    guessing += drafted > 0 ? 1 : 0;
    seconds += taken;
    tokens += kRows * (1.0 + accepted);
  }
  EXPECT_GT(guessing, 10) << "it seems to pay, and is tried again";
  EXPECT_LT(seconds, 1.012 * plain * tokens / kRows);
}

TEST(DraftPace, OfOneSizeOfBatchIsNotHeldBackByAnother) {
  DraftPace pace(4);
  const StepCost cost = cost_of(10e-3, 1e-3);
  DraftHistory history = history_of(pace, 40, 4, 4);
  StepShape guessed;
  for (int row = 0; row < 4; ++row) guessed.add_decode(100, 4);
  for (int step = 0; step < 20; ++step) pace.settle(cost, guessed, 4, true, 4.0, cost.decode_seconds(guessed));
  pace.begin_step(cost, rows(4), false);
  EXPECT_EQ(pace.drafts(history, 4), 0);
  pace.begin_step(cost, rows(1), false);
  EXPECT_EQ(pace.drafts(history, 4), 4);
  for (int step = 0; step < 6800; ++step) pace.settle(cost, rows(4), 4, false, 4.0, 14e-3);
  pace.begin_step(cost, rows(4), false);
  EXPECT_GT(pace.drafts(history, 4), 0) << "and is tried again";
}

// A model guesses what the mask rules out: nothing is verified, and the time is gone.
TEST(DraftPace, GuessesThatAreCutCostTheirTime) {
  DraftPace pace(4);
  const StepCost cost = cost_of(10e-3, 1e-3);
  DraftHistory history = history_of(pace, 40, 4, 4);
  const double taken = 1.5 * cost.decode_seconds(rows(1));
  for (int step = 0; step < 20; ++step) pace.settle(cost, rows(1), 1, true, 1.0, taken);
  pace.begin_step(cost, rows(1), false);
  EXPECT_EQ(pace.drafts(history, 4), 0);
  for (int step = 0; step < 6800; ++step) pace.settle(cost, rows(1), 1, false, 1.0, taken);
  pace.begin_step(cost, rows(1), false);
  EXPECT_GT(pace.drafts(history, 4), 0) << "steps in which no model guessed make it good";
}

TEST(DraftPace, AlwaysGuessesIfToldSo) {
  DraftPace pace(4, true);
  const StepCost cost = cost_of(10e-3, 1e-3);
  DraftHistory history = history_of(pace, 40, 4, 0);
  for (int step = 0; step < 20; ++step) pace.settle(cost, rows(1), 1, true, 1.0, 10.0);
  pace.begin_step(cost, rows(1), false);
  EXPECT_EQ(pace.drafts(history, 9), 4);
  EXPECT_EQ(pace.drafts(history, 2), 2);
  pace.begin_step(cost, rows(1), true);
  EXPECT_EQ(pace.drafts(history, 4), 0) << "others wait for the machine";
}

TEST(DraftPace, GuessesThatAreCutWereWrong) {
  DraftPace pace(4);
  DraftHistory history;
  for (int i = 0; i < 40; ++i) pace.observe(history, 0, 0, 0, true);
  pace.begin_step(cost_of(10e-3, 1e-3), rows(1), false);
  EXPECT_EQ(pace.drafts(history, 4), 0);
  EXPECT_EQ(history.rejected, 0) << "nobody is told of them";
  EXPECT_TRUE(history.has_models);
  DraftHistory second;
  DraftPace other(4);
  for (int i = 0; i < 40; ++i) other.observe(second, 1, 1, 1, true);
  other.begin_step(cost_of(10e-3, 1e-3), rows(1), false);
  EXPECT_EQ(other.drafts(second, 4), 1) << "the one before it was right";
  EXPECT_EQ(second.accepted, 40);
}

// Through the scheduler: what the request says bounds what its rows may draft.
TEST(DraftPace, KeepsToWhatRequestsWant) {
  SchedulerOptions options = Rig::small_options();
  options.draft_tokens = 6;
  options.draft_always = true;
  for (const auto& [method, most] : {std::pair{DraftMethod::kOff, 0}, std::pair{DraftMethod::kAuto, 2}}) {
    Rig rig(options);
    GenerationRequest request = Rig::tinted({}, Rig::prompt_of(10, 1), 60);
    request.speculation = {.method = method, .max_tokens = 2};
    Client& client = rig.complete(rig.submit(std::move(request)));
    std::int32_t drafts = 0;
    for (const StepRecord& step : rig.model.steps())
      for (const step::StepRow& row : step.rows) drafts = std::max(drafts, row.drafts);
    EXPECT_EQ(drafts, most);
    const Usage& usage = client.finish->usage;
    EXPECT_EQ(usage.accepted_drafts > 0, most > 0);
    EXPECT_EQ(usage.accepted_drafts + usage.rejected_drafts > usage.accepted_drafts, most > 0);
    const DraftStats stats = rig.scheduler->stats().drafts;
    EXPECT_EQ(std::cmp_equal(stats.accepted[static_cast<std::size_t>(DraftSource::kNgram)][0] +
                                 stats.accepted[static_cast<std::size_t>(DraftSource::kNgram)][1],
                             usage.accepted_drafts),
              true);
    rig.run_to_end();
  }
}

}  // namespace
}  // namespace braid::sched::test
