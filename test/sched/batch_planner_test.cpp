#include "sched/batch_planner.h"

#include "sched/roster.h"
#include "sched/ticket.h"

#include <algorithm>
#include <array>
#include <gmock/gmock.h>
#include <memory>
#include <utility>
#include <vector>

namespace braid::sched {
namespace {

class NobodyListens final : public TicketListener {
  void on_abandoned(Sequence&, bool) noexcept override {}
  void on_drained(Sequence&) noexcept override {}
};

// Roster and planner without loop, strand or model: steps "come back" when the test says so.
class BatchPlannerTest : public testing::Test {
 protected:
  static SchedulerOptions small() {
    SchedulerOptions options;
    options.max_batch = 4;
    options.max_batch_tokens = 32;
    options.context_length = 100;
    options.block_tokens = 4;
    options.blocks = 20;
    options.stream_capacity = 8;
    return options;
  }

  Sequence& enqueue(std::int32_t prompt, std::int32_t max_tokens, SamplingParams sampling = {}) {
    GenerationRequest request;
    request.sampling = std::move(sampling);
    for (std::int32_t i = 0; i < prompt; ++i) request.prompt.push_back(i + 100 * static_cast<std::int32_t>(tickets_.size()));
    Sequence& sequence = roster_.enqueue(std::move(request), max_tokens, {});
    tickets_.push_back(std::make_unique<SequenceTicket>(nobody_, options_.stream_capacity));
    tickets_.back()->attach(sequence);
    return sequence;
  }

  const step::StepPlan& plan() { return plan_by(planner_); }

  const step::StepPlan& plan_by(const BatchPlanner& planner) {
    plan_.clear();
    step_ = PlannedStep{&plan_, {}, {}, {}, {}};
    full_.clear();
    complete_ = planner.add_decodes(roster_.batch(), step_, DraftPace(0), full_);
    if (complete_) roster_.admit(0.0);
    planner.add_prefills(roster_.batch(), step_, pace_);
    return plan_;
  }

  // The last plan's samples arrive.
  void come_back() {
    for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
      Sequence& sequence = *step_.members[i];
      sequence.progress.came_back(advance_of(plan_.rows[i]));
      if (plan_.rows[i].samples()) sequence.tokens.push_back(1000);
      if (sequence.progress.leave_step()) roster_.settle(sequence);
    }
  }

  SchedulerOptions options_ = small();
  NobodyListens nobody_;
  Roster roster_{options_};
  BatchPlanner planner_{options_};
  PrefillPace pace_{0.05};
  std::vector<std::unique_ptr<SequenceTicket>> tickets_;
  step::StepPlan plan_;
  PlannedStep step_;
  std::vector<Sequence*> full_;
  bool complete_ = true;
};

// Wherever a slice begins and ends.
TEST_F(BatchPlannerTest, ASliceBringsTheVectorsOfItsPartOfAnImage) {
  GenerationRequest request;
  request.prompt.assign(80, 9);
  request.media = {{3, 40, {1, 1}}, {43, 1, {1, 2}}, {70, 10, {1, 3}}};
  const auto vectors = std::make_shared<const std::vector<float>>(51, 1.0F);
  request.media_vectors = {{vectors, 0}, {vectors, 40}, {vectors, 41}};
  request.adapter = {2, "tuned"};
  Sequence& sequence = roster_.enqueue(std::move(request), 5, {});
  tickets_.push_back(std::make_unique<SequenceTicket>(nobody_, options_.stream_capacity));
  tickets_.back()->attach(sequence);
  std::vector<std::array<std::int64_t, 3>> found;  // position, count, first vector
  while (sequence.phase != SequencePhase::kDecode) {
    for (const step::StepRow& row : plan().rows) {
      EXPECT_EQ(row.adapter, 2U);
      EXPECT_EQ(row.given_count, plan_.given.size());
      for (const step::GivenVectors& given : plan_.given) {
        EXPECT_EQ(given.vectors, vectors);
        found.push_back({row.position + given.first, given.count, given.begin});
      }
    }
    come_back();
  }
  EXPECT_THAT(found,
              testing::ElementsAreArray(std::vector<std::array<std::int64_t, 3>>{{3, 29, 0}, {32, 11, 29}, {43, 1, 40}, {70, 10, 41}}));
}

// Where rotary positions follow the rows and columns of pictures, text behind one goes on at less than its position.
TEST_F(BatchPlannerTest, RowsKnowHowFarPicturesHaveShiftedThem) {
  GenerationRequest request;
  request.prompt.assign(80, 9);
  request.media = {{3, 40, {1, 1}}, {50, 6, {1, 3}}};
  request.media_grids = {{4, 10}, {3, 2}};
  const auto vectors = std::make_shared<const std::vector<float>>(46, 1.0F);
  request.media_vectors = {{vectors, 0}, {vectors, 40}};
  Sequence& sequence = roster_.enqueue(std::move(request), 5, {});
  tickets_.push_back(std::make_unique<SequenceTicket>(nobody_, options_.stream_capacity));
  tickets_.back()->attach(sequence);
  std::vector<std::array<std::int32_t, 4>> found;  // position, shift, offset and columns of the first given vectors
  while (sequence.phase != SequencePhase::kDecode) {
    const step::StepRow& row = plan().rows.front();
    const step::GivenVectors given = plan_.given.empty() ? step::GivenVectors{} : plan_.given.front();
    found.push_back({row.position, row.shift, given.offset, given.grid.columns});
    come_back();
  }
  EXPECT_EQ(plan().rows.front().shift, 10 - 40 + 3 - 6);  // the answer's
  EXPECT_THAT(found, testing::ElementsAreArray(std::vector<std::array<std::int32_t, 4>>{{0, 0, 0, 10}, {32, 0, 29, 10}, {64, -33, 0, 0}}));
}

// Before such tokens, or behind them, also where they are more than a step has otherwise.
TEST_F(BatchPlannerTest, NoSliceEndsAmongTokensThatSeeEachOther) {
  SchedulerOptions options = options_;
  options.media_whole = true;
  const BatchPlanner planner(options);
  GenerationRequest request;
  request.prompt.assign(79, 9);
  request.media = {{3, 40, {1, 1}}, {60, 19, {1, 3}}};
  const auto vectors = std::make_shared<const std::vector<float>>(59, 1.0F);
  request.media_vectors = {{vectors, 0}, {vectors, 40}};
  Sequence& sequence = roster_.enqueue(std::move(request), 1, {});
  tickets_.push_back(std::make_unique<SequenceTicket>(nobody_, options_.stream_capacity));
  tickets_.back()->attach(sequence);
  std::vector<std::array<std::int32_t, 2>> found;  // position, count
  while (sequence.phase != SequencePhase::kDecode) {
    const step::StepRow& row = plan_by(planner).rows.front();
    found.push_back({row.position, row.count});
    come_back();
  }
  EXPECT_THAT(found, testing::ElementsAreArray(std::vector<std::array<std::int32_t, 2>>{{0, 3}, {3, 40}, {43, 17}, {60, 19}}));
}

TEST_F(BatchPlannerTest, WholePromptIsOneRowThatSamples) {
  Sequence& sequence = enqueue(6, 10);
  const step::StepPlan& step = plan();
  ASSERT_EQ(step.rows.size(), 1U);
  const step::StepRow& row = step.rows[0];
  EXPECT_EQ(row.position, 0);
  EXPECT_EQ(row.count, 6);
  EXPECT_EQ(row.block_count, 2U);
  EXPECT_TRUE(row.samples());
  EXPECT_FALSE(row.from_sampler());
  EXPECT_EQ(step.tokens, (std::vector<TokenId>{0, 1, 2, 3, 4, 5}));
  ASSERT_EQ(step.starts.size(), 1U);
  EXPECT_EQ(step.starts[0].slot, row.slot);
  EXPECT_EQ(step.starts[0].stop.max_tokens, 10);
  EXPECT_EQ(sequence.phase, SequencePhase::kDecode);
}

TEST_F(BatchPlannerTest, DecodeRowIsPlannedBeforeItsTokenIsKnown) {
  enqueue(6, 10);
  plan();
  const step::StepPlan& next = plan();
  ASSERT_EQ(next.rows.size(), 1U);
  EXPECT_TRUE(next.starts.empty());
  EXPECT_TRUE(next.rows[0].from_sampler());
  EXPECT_TRUE(next.rows[0].samples());
  EXPECT_EQ(next.rows[0].position, 6);
  EXPECT_EQ(next.rows[0].count, 1);
}

TEST_F(BatchPlannerTest, LongPromptIsSlicedByTheTokenBudget) {
  enqueue(70, 1);
  for (const std::int32_t expected : {32, 32, 6}) {
    const step::StepPlan& step = plan();
    ASSERT_EQ(step.rows.size(), 1U);
    EXPECT_EQ(step.rows[0].count, expected);
    EXPECT_EQ(step.rows[0].samples(), expected == 6);
    EXPECT_EQ(step.tokens.front(), step.rows[0].position);
  }
}

TEST_F(BatchPlannerTest, AStartBringsAllKnownTokensWherePenaltiesLookBack) {
  Sequence& sequence = enqueue(40, 5, {.presence_penalty = 0.5F});
  const step::StepPlan& step = plan();
  ASSERT_EQ(step.starts.size(), 1U);
  ASSERT_EQ(step.starts[0].history_count, 40U);
  const auto history = step.tokens.begin() + step.starts[0].history_begin;
  EXPECT_TRUE(std::equal(sequence.tokens.begin(), sequence.tokens.end(), history));
  EXPECT_EQ(step.rows[0].token_begin, 0U);
  EXPECT_EQ(step.tokens[0], sequence.tokens[0]);
}

TEST_F(BatchPlannerTest, APreemptedStartBringsItsAnswerToo) {
  enqueue(36, 40);
  Sequence& young = enqueue(36, 40, {.presence_penalty = 0.5F});
  while (roster_.make_room() == 0) {
    plan();
    come_back();
  }
  ASSERT_EQ(young.phase, SequencePhase::kWaiting);
  ASSERT_GT(young.generated(), 0);
  roster_.remove(roster_.batch().begin()->second);  // the old one leaves
  const step::StepPlan& step = plan();
  ASSERT_EQ(step.starts.size(), 1U);
  ASSERT_EQ(step.starts[0].history_count, young.tokens.size());
  EXPECT_EQ(step.tokens[step.starts[0].history_begin + step.starts[0].history_count - 1], 1000) << "a token of the answer";
}

TEST_F(BatchPlannerTest, SlicesGoToTheOldestFirst) {
  enqueue(20, 1);
  enqueue(20, 1);
  const step::StepPlan& step = plan();
  ASSERT_EQ(step.rows.size(), 2U);
  EXPECT_EQ(step.rows[0].count, 20);
  EXPECT_EQ(step.rows[1].count, 12);
  EXPECT_EQ(step.rows[1].token_begin, 20U);
  EXPECT_EQ(step.rows[1].block_begin, 5U);
  EXPECT_EQ(step_.shape.prefill_tokens, 32);
}

TEST_F(BatchPlannerTest, PlansNoMoreRowsThanTokensAreWanted) {
  enqueue(3, 2);
  EXPECT_EQ(plan().rows.size(), 1U);
  EXPECT_EQ(plan().rows.size(), 1U);
  EXPECT_TRUE(plan().rows.empty()) << "both tokens are on their way";
}

TEST_F(BatchPlannerTest, FullStreamIsReportedOnlyWhenNothingIsOnItsWay) {
  Sequence& sequence = enqueue(3, 50);
  plan();
  come_back();
  for (int i = 0; i < options_.stream_capacity - 1; ++i) tickets_[0]->stream().push({});
  ASSERT_EQ(plan().rows.size(), 1U);
  EXPECT_TRUE(plan().rows.empty()) << "the last place is taken by the token in flight";
  EXPECT_TRUE(full_.empty());
  sequence.progress.came_back({1, 1, 1, 1});
  sequence.progress.leave_step();
  tickets_[0]->stream().push({});
  EXPECT_TRUE(plan().rows.empty());
  EXPECT_EQ(full_, std::vector<Sequence*>{&sequence});
}

TEST_F(BatchPlannerTest, AdmissionKeepsAMarginForTheBatch) {
  enqueue(39, 1);  // ten of twenty blocks
  enqueue(40, 1);  // the other ten, and the margin is one
  EXPECT_EQ(plan().rows.size(), 1U);
  EXPECT_EQ(roster_.queue().waiting().size(), 1U);
  EXPECT_EQ(roster_.pool().free(), 10);
}

TEST_F(BatchPlannerTest, YoungestMakesRoom) {
  Sequence& old = enqueue(36, 40);
  Sequence& young = enqueue(36, 40);
  while (old.phase != SequencePhase::kDecode || young.phase != SequencePhase::kDecode) {
    plan();
    come_back();
  }
  std::int32_t preempted = 0;
  while (preempted == 0) {
    preempted = roster_.make_room();
    if (preempted > 0) break;
    plan();
    come_back();
  }
  EXPECT_EQ(preempted, 1);
  EXPECT_EQ(young.phase, SequencePhase::kWaiting);
  EXPECT_EQ(young.progress.planned(), 0);
  EXPECT_EQ(young.blocks.places(), 0);
  EXPECT_GT(young.generated(), 0) << "what it has generated becomes part of its prompt";
  EXPECT_EQ(old.phase, SequencePhase::kDecode);
  EXPECT_FALSE(plan().rows.empty());
}

TEST_F(BatchPlannerTest, PreemptedInFlightGivesItsBlocksWhenItsStepIsBack) {
  Sequence& old = enqueue(40, 40);
  Sequence& young = enqueue(34, 40);
  while (young.phase != SequencePhase::kDecode) {
    plan();
    come_back();
  }
  while (roster_.pool().free() > 0) {
    plan();
    come_back();
  }
  plan();  // both are in flight now
  while (roster_.make_room() == 0) {
    come_back();
    plan();
  }
  EXPECT_EQ(young.phase, SequencePhase::kPreempted);
  EXPECT_GT(young.blocks.places(), 0);
  EXPECT_EQ(roster_.make_room(), 0) << "what is promised counts";
  come_back();
  EXPECT_EQ(young.phase, SequencePhase::kWaiting);
  EXPECT_EQ(young.blocks.places(), 0);
  EXPECT_EQ(old.phase, SequencePhase::kDecode);
}

TEST(SchedulerOptions, FaultsNameTheOption) {
  SchedulerOptions options;
  EXPECT_EQ(find_fault(options)->message, "the context length must be at least 1, not 0");
  options.context_length = 100;
  options.blocks = 10;
  EXPECT_FALSE(find_fault(options));
  options.max_batch_tokens = options.max_batch;
  EXPECT_NE(find_fault(options)->message.find("max-batch-tokens (256) must be larger than max-batch (256)"), std::string::npos);
}

}  // namespace
}  // namespace braid::sched
