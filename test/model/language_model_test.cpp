// The rules of step.h, on the draft model.
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <thread>

namespace braid::model::test {
namespace {

constexpr SamplingParams kGreedy{.temperature = 0.0F};

class LanguageModelSteps : public testing::Test {
 protected:
  void SetUp() override {
    static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
    model_ = LanguageModel::load(file, kernels::best_kernel_table(), {.max_batch = 4, .end_tokens = {2}, .progress = {}}).value();
    model_->allocate_kv(16).value();
    plan_.blocks = {3, 1};
  }

  void start(step::SlotId slot, const StopRules& stop, const SamplingParams& sampling = kGreedy) {
    plan_.starts = {{.slot = slot, .sampling = sampling, .stop = stop}};
  }

  // One step of a prompt, then greedy steps; what was sampled, until the slot finishes.
  std::vector<step::RowResult> generate(const StopRules& stop) {
    std::vector<step::RowResult> rows;
    start(0, stop);
    plan_.tokens = {1, 314, 206, 1454, 8, 2, 206, 1, 319, 206};
    plan_.rows = {{.slot = 0, .count = 10, .block_count = 2, .output = step::RowOutput::kSample}};
    for (std::int32_t position = 10; position < 32; ++position) {
      model_->execute(plan_, result_);
      EXPECT_FALSE(result_.failure);
      rows.push_back(result_.rows.at(0));
      if (rows.back().finished) break;
      plan_.starts.clear();
      plan_.rows = {
          {.slot = 0, .position = position, .block_count = 2, .input = step::RowInput::kSampled, .output = step::RowOutput::kSample}};
    }
    return rows;
  }

  std::string failure() {
    model_->execute(plan_, result_);
    EXPECT_TRUE(result_.rows.empty());
    try {
      if (result_.failure) std::rethrow_exception(result_.failure);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  std::unique_ptr<LanguageModel> model_;
  step::StepPlan plan_;
  step::StepResult result_;
};

TEST_F(LanguageModelSteps, EndAtMaxTokens) {
  const auto rows = generate({.max_tokens = 3, .ignore_eos = true, .stop_token_ids = {}});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[1].finished);
  EXPECT_TRUE(rows[2].finished);
  EXPECT_EQ(rows[2].reason, FinishReason::kLength);
}

TEST_F(LanguageModelSteps, EndAtEndOfSequenceUnlessIgnored) {
  const auto rows = generate({.max_tokens = 22, .stop_token_ids = {}});
  ASSERT_LT(rows.size(), 22U) << "the draft model answers a greeting in a few tokens";
  EXPECT_EQ(rows.back().token, 2);
  EXPECT_EQ(rows.back().reason, FinishReason::kStop);
  EXPECT_EQ(generate({.max_tokens = 22, .ignore_eos = true, .stop_token_ids = {}}).size(), 22U);
}

TEST_F(LanguageModelSteps, EndAtAStopTokenNotBeforeMinTokens) {
  const auto free = generate({.max_tokens = 8, .ignore_eos = true, .stop_token_ids = {}});
  const TokenId stop = free.at(1).token;
  EXPECT_EQ(generate({.max_tokens = 8, .ignore_eos = true, .stop_token_ids = {stop}}).size(), 2U);
  const auto later = generate({.max_tokens = 8, .min_tokens = 4, .ignore_eos = true, .stop_token_ids = {stop}});
  ASSERT_GE(later.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NE(later[i].token, stop);
}

TEST_F(LanguageModelSteps, SkipARowWhoseSlotHasFinished) {
  generate({.max_tokens = 1, .stop_token_ids = {}});
  plan_.starts.clear();
  plan_.rows = {{.slot = 0, .position = 10, .block_count = 2, .input = step::RowInput::kSampled, .output = step::RowOutput::kSample}};
  model_->execute(plan_, result_);
  ASSERT_EQ(result_.rows.size(), 1U);
  EXPECT_FALSE(result_.rows[0].ran);
  EXPECT_FALSE(result_.rows[0].sampled);
}

TEST_F(LanguageModelSteps, CountTokensOfBeforeAPreemption) {
  start(0, {.max_tokens = 5, .stop_token_ids = {}});
  plan_.starts[0].generated = 4;
  plan_.tokens = {5};
  plan_.rows = {{.slot = 0, .block_count = 1, .output = step::RowOutput::kSample}};
  model_->execute(plan_, result_);
  EXPECT_TRUE(result_.rows.at(0).finished);
}

TEST_F(LanguageModelSteps, ReportTopLogprobsOfEachRow) {
  plan_.starts = {{.slot = 0, .sampling = {.temperature = 0.0F, .top_logprobs = 3}, .stop = {}},
                  {.slot = 1, .sampling = {.temperature = 0.0F}, .stop = {}},
                  {.slot = 2, .sampling = {.temperature = 0.0F, .top_logprobs = 5}, .stop = {}}};
  plan_.tokens = {5, 6, 7};
  plan_.blocks = {0, 1, 2};
  for (std::uint32_t i = 0; i < 3; ++i)
    plan_.rows.push_back({.slot = i, .token_begin = i, .block_begin = i, .block_count = 1, .output = step::RowOutput::kSample});
  model_->execute(plan_, result_);
  EXPECT_EQ(result_.rows.at(0).top_count, 3U);
  EXPECT_EQ(result_.rows.at(1).top_count, 0U);
  EXPECT_EQ(result_.rows.at(2).top_count, 5U);
  for (const step::RowResult& row : result_.rows) {
    if (row.top_count == 0) continue;
    EXPECT_EQ(result_.top[row.top_begin].id, row.token);
    EXPECT_EQ(result_.top[row.top_begin].logprob, row.logprob);
  }
}

TEST_F(LanguageModelSteps, SkipTheRowsOfAFailedStepAndServeTheOthers) {
  for (const step::SlotId slot : {0U, 1U}) {
    start(slot, {.max_tokens = 8, .ignore_eos = true, .stop_token_ids = {}});
    plan_.tokens = {5};
    plan_.rows = {{.slot = slot, .block_begin = slot, .block_count = 1, .output = step::RowOutput::kSample}};
    model_->execute(plan_, result_);
    ASSERT_TRUE(result_.rows.at(0).sampled);
  }
  plan_.starts.clear();
  plan_.rows = {{.slot = 0, .position = 1, .block_count = 0, .input = step::RowInput::kSampled, .output = step::RowOutput::kSample}};
  EXPECT_EQ(failure(), "step plan: too few blocks");
  plan_.rows = {{.slot = 0, .position = 2, .block_count = 1, .input = step::RowInput::kSampled, .output = step::RowOutput::kSample},
                {.slot = 1,
                 .position = 1,
                 .block_begin = 1,
                 .block_count = 1,
                 .input = step::RowInput::kSampled,
                 .output = step::RowOutput::kSample}};
  model_->execute(plan_, result_);
  ASSERT_FALSE(result_.failure);
  EXPECT_FALSE(result_.rows.at(0).ran);
  EXPECT_TRUE(result_.rows.at(1).sampled);
}

// What the rows overwrite is saved before; what they read is loaded before.
TEST_F(LanguageModelSteps, SaveCheckAndLoadBlocksBeforeTheRows) {
  const std::size_t block_bytes = model_->kv_layout().block_bytes();
  std::vector<std::byte> saved(block_bytes), changed(block_bytes), again(block_bytes);
  const StopRules stop{.max_tokens = 9, .ignore_eos = true, .stop_token_ids = {}};
  const SamplingParams with_logprob{.temperature = 0.0F, .top_logprobs = 0};
  const auto prefill = [&](TokenId first, std::int32_t block) {
    start(0, stop, with_logprob);
    plan_.tokens = {first, 314, 206, 1454, 8, 2, 206, 1, 319, 206, 7, 9, 1, 4, 5, 6};
    plan_.blocks = {block};
    plan_.rows = {{.slot = 0, .count = 16, .block_count = 1, .output = step::RowOutput::kSample}};
    model_->execute(plan_, result_);
    EXPECT_FALSE(result_.failure);
    return result_.rows.at(0).logprob;
  };
  const float original = prefill(1, 3);
  plan_.saves = {{3, saved.data()}};
  const float other = prefill(2, 3);
  plan_.saves = {{3, changed.data()}};
  plan_.checks = {{3, 3}, {3, 5}};
  plan_.loads = {{5, saved.data()}};
  plan_.rows = {};
  plan_.starts = {};
  model_->execute(plan_, result_);
  EXPECT_FALSE(result_.failure);
  EXPECT_THAT(result_.unequal, testing::ElementsAre(1U));
  EXPECT_NE(saved, changed);
  plan_.clear();
  plan_.saves = {{5, again.data()}};
  start(0, stop, with_logprob);
  plan_.tokens = {6};
  plan_.blocks = {5};
  plan_.rows = {{.slot = 0, .position = 15, .count = 1, .block_count = 1, .output = step::RowOutput::kSample}};
  model_->execute(plan_, result_);
  EXPECT_EQ(again, saved);
  EXPECT_EQ(result_.rows.at(0).logprob, original);
  EXPECT_NE(other, original);

  plan_.clear();
  plan_.forks = {{3, 6}, {5, 7}, {7, 6}};  // in their order
  plan_.loads = {{5, changed.data()}};     // whose owner has changed: it is loaded after the copy
  start(0, stop, with_logprob);
  plan_.tokens = {6};
  plan_.blocks = {6};
  plan_.rows = {{.slot = 0, .position = 15, .count = 1, .block_count = 1, .output = step::RowOutput::kSample}};
  model_->execute(plan_, result_);
  EXPECT_FALSE(result_.failure);
  EXPECT_EQ(result_.rows.at(0).logprob, original);
}

// Of a recurrent state, too: what lies behind it in its block, left from whoever had that before, is no part of it.
TEST(RecurrentSteps, SaveOfAStateWhatIsItsOwn) {
  LoadOptions options{.kv_type = kernels::KvType::kF16, .max_batch = 1, .end_tokens = {}, .progress = {}};
  auto model = LanguageModel::load(open_folder_model("lfm2"), kernels::best_kernel_table(), options).value();
  ASSERT_EQ(model->kv_groups().states.blocks(), 1);
  model->allocate_kv(3).value();
  std::vector<std::byte> state(model->kv_groups().block_bytes());
  step::StepPlan plan;
  step::StepResult result;
  const auto saved = [&](std::int32_t keys, std::int32_t place) {
    plan.clear();
    plan.starts.push_back({});
    for (std::int32_t i = 0; i < 16; ++i) plan.tokens.push_back(3 + 5 * i);
    plan.blocks = {keys, place};
    plan.rows = {{.slot = 0, .count = 16, .block_count = 1, .state_begin = 1}};
    model->execute(plan, result);
    EXPECT_FALSE(result.failure);
    plan.clear();
    plan.saves = {{place, state.data(), step::kStateGroup, 0}};
    model->execute(plan, result);
    EXPECT_FALSE(result.failure);
    return state;
  };
  const std::vector<std::byte> clean = saved(0, 1);
  EXPECT_EQ(clean.back(), std::byte{0});
  EXPECT_EQ(saved(2, 0), clean) << "where keys and values were";
  plan.clear();
  plan.saves = {{0, state.data(), step::kStateGroup, 1}};
  model->execute(plan, result);
  EXPECT_TRUE(result.failure) << "the state has no second part";
}

TEST_F(LanguageModelSteps, RefuseAPlanThatPointsOutside) {
  const auto sound = [&] {
    start(0, {.stop_token_ids = {}});
    plan_.tokens = {5, 6};
    plan_.blocks = {0};
    plan_.rows = {{.slot = 0, .count = 2, .block_count = 1, .output = step::RowOutput::kSample}};
  };
  sound();
  plan_.rows[0].slot = 4;
  EXPECT_EQ(failure(), "step plan: slot out of range");
  sound();
  plan_.tokens[1] = -1;
  EXPECT_EQ(failure(), "step plan: token out of the vocabulary");
  sound();
  plan_.blocks[0] = 16;
  EXPECT_EQ(failure(), "step plan: block out of the pool");
  sound();
  plan_.loads = {{0, nullptr}};
  EXPECT_EQ(failure(), "step plan: copied block out of the pool");
  plan_.loads = {{0, nullptr, 1}};
  EXPECT_EQ(failure(), "step plan: copied block out of the pool");
  plan_.loads.clear();
  plan_.checks = {{0, 16}};
  EXPECT_EQ(failure(), "step plan: checked block out of the pool");
  plan_.checks.clear();
  sound();
  plan_.rows[0].position = 15;
  EXPECT_EQ(failure(), "step plan: too few blocks");
  sound();
  plan_.rows[0].count = 3;
  EXPECT_EQ(failure(), "step plan: tokens out of range");
  sound();
  plan_.rows[0].position = model_->context_length() - 1;
  EXPECT_EQ(failure(), "step plan: position out of the context");
  sound();
  plan_.rows[0].input = step::RowInput::kSampled;
  plan_.rows[0].count = 1;
  EXPECT_EQ(failure(), "step plan: nothing was sampled for this slot yet");
  sound();
  EXPECT_EQ((model_->execute(plan_, result_), result_.rows.size()), 1U);
}

TEST_F(LanguageModelSteps, GiveTheLogProbabilitiesOfPromptTokens) {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  plan_.tokens = {1, 314, 206, 1454, 8, 2, 206, 1, 319, 206};
  // As the harness, with keys and values as f32.
  model_ = LanguageModel::load(file, kernels::best_kernel_table(),
                               {.kv_type = kernels::KvType::kF32, .max_batch = 4, .end_tokens = {}, .progress = {}})
               .value();
  model_->allocate_kv(16).value();
  start(0, {.max_tokens = 0, .stop_token_ids = {}});
  plan_.rows = {{.slot = 0, .count = 9, .block_count = 2, .scored = 9, .scored_top = 2}};  // the tenth token is only scored
  model_->execute(plan_, result_);
  ASSERT_FALSE(result_.failure);
  EXPECT_FALSE(result_.rows[0].sampled);
  ASSERT_EQ(result_.rows[0].scored_count, 9U);

  ForwardHarness harness(file, kernels::best_kernel_table());
  const std::vector<float> logits = harness.logits(plan_.tokens);
  const auto vocab = static_cast<std::size_t>(harness.model().vocab);
  for (std::size_t i = 0; i < 9; ++i) {
    const auto row = std::span(logits).subspan(i * vocab, vocab);
    double total = 0.0;
    for (const float logit : row) total += std::exp(static_cast<double>(logit));
    const step::ScoredToken& scored = result_.scored[i];
    ASSERT_EQ(scored.token, plan_.tokens[i + 1]);
    EXPECT_NEAR(scored.logprob, static_cast<double>(row[static_cast<std::size_t>(scored.token)]) - std::log(total), 1e-4);
    ASSERT_EQ(scored.top_count, 2U);
    EXPECT_EQ(result_.top[scored.top_begin].id, std::ranges::max_element(row) - row.begin());
    EXPECT_GE(result_.top[scored.top_begin].logprob, result_.top[scored.top_begin + 1].logprob);
  }
}

// Beside a sequence that decodes, in slices of every size: the same bits, and what the hidden states of single tokens add up to.
TEST_F(LanguageModelSteps, PoolAPromptAlikeHoweverItIsSliced) {
  const std::vector<TokenId> prompt{1, 314, 206, 1454, 8, 2, 206, 1, 319, 206};
  const auto vector_of = [&](Pooling pooling, std::int32_t length, std::int32_t slice, std::int32_t from = 0) {
    plan_ = {};
    plan_.blocks = {3, 1, 2};
    plan_.starts = {
        {.slot = 0, .sampling = kGreedy, .stop = {.max_tokens = 0, .stop_token_ids = {}}, .pooling = pooling, .pooled_from = from},
        {.slot = 1, .sampling = kGreedy, .stop = {.max_tokens = 100, .ignore_eos = true, .stop_token_ids = {}}}};
    plan_.tokens = prompt;
    std::int32_t other = 0;
    for (std::int32_t position = 0; position < length; position += slice) {
      const std::int32_t count = std::min(slice, length - position);
      plan_.rows = {{.slot = 1, .position = other, .block_begin = 2, .block_count = 1, .output = step::RowOutput::kSample},
                    {.slot = 0,
                     .position = position,
                     .count = count,
                     .token_begin = static_cast<std::uint32_t>(position),
                     .block_count = 2,
                     .output = position + count == length ? step::RowOutput::kVector : step::RowOutput::kNone}};
      if (other++ > 0) plan_.rows[0].input = step::RowInput::kSampled;
      model_->execute(plan_, result_);
      EXPECT_FALSE(result_.failure);
      EXPECT_TRUE(result_.rows[0].sampled);
      plan_.starts.clear();
    }
    const step::RowResult& row = result_.rows[1];
    const auto vectors = static_cast<std::uint32_t>(pooling == Pooling::kEach ? length - from : 1);
    EXPECT_EQ(row.vector_count, vectors * static_cast<std::uint32_t>(model_->shape().embedding));
    const auto begin = result_.vectors.begin() + row.vector_begin;
    return std::vector<float>(begin, begin + row.vector_count);
  };
  std::vector<std::vector<float>> states;  // of each token
  for (std::int32_t length = 1; length <= 10; ++length) states.push_back(vector_of(Pooling::kLast, length, length));
  for (const std::int32_t slice : {1, 3, 7, 10}) {
    EXPECT_EQ(vector_of(Pooling::kLast, 10, slice), states.back()) << slice;
    EXPECT_EQ(vector_of(Pooling::kFirst, 10, slice), states.front()) << slice;
    std::vector<float> each;
    for (const auto& state : states) each.insert(each.end(), state.begin(), state.end());
    EXPECT_EQ(vector_of(Pooling::kEach, 10, slice), each) << slice;
    each.erase(each.begin(), each.begin() + 4 * model_->shape().embedding);
    EXPECT_EQ(vector_of(Pooling::kEach, 10, slice, 4), each) << slice;
    std::vector<float> mean = vector_of(Pooling::kMean, 10, slice);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      double sum = 0.0;
      for (const auto& state : states) sum += static_cast<double>(state[i]);
      ASSERT_EQ(mean[i], static_cast<float>(sum / 10)) << slice;
    }
  }
}

TEST_F(LanguageModelSteps, RefuseAVectorOfAPromptThatDoesNotBeginAtItsBeginning) {
  start(0, {.max_tokens = 0, .stop_token_ids = {}});
  plan_.starts[0].pooling = Pooling::kMean;
  plan_.tokens = {5, 6};
  plan_.rows = {{.slot = 0, .position = 3, .count = 2, .block_count = 1, .output = step::RowOutput::kVector}};
  EXPECT_EQ(failure(), "step plan: a mean lacks positions");
  plan_.starts.clear();
  plan_.rows[0].position = 0;
  EXPECT_EQ((model_->execute(plan_, result_), result_.rows.at(0).ran), false) << "a failed step leaves no slot half-way";
}

TEST_F(LanguageModelSteps, RefuseScoredTokensThatAreNotThere) {
  plan_.tokens = {1, 314, 206};
  start(0, {.max_tokens = 1, .stop_token_ids = {}});
  plan_.rows = {{.slot = 0, .count = 3, .block_count = 2, .output = step::RowOutput::kSample, .scored = 3}};
  EXPECT_EQ(failure(), "step plan: more scored tokens than logits");
  plan_.rows = {{.slot = 0, .count = 3, .block_count = 2, .scored = 3}};
  EXPECT_EQ(failure(), "step plan: scored tokens out of range");
}

TEST_F(LanguageModelSteps, RefuseVectorsThatAreNotThere) {
  const auto width = static_cast<std::size_t>(model_->shape().embedding);
  const auto two = std::make_shared<const std::vector<float>>(2 * width, 0.1F);
  plan_.tokens = {1, 314, 206};
  start(0, {.max_tokens = 1, .stop_token_ids = {}});
  const auto with = [&](std::vector<step::GivenVectors> given) {
    plan_.given = std::move(given);
    plan_.rows = {{.slot = 0, .count = 3, .block_count = 2, .output = step::RowOutput::kSample}};
    plan_.rows[0].given_count = static_cast<std::uint32_t>(plan_.given.size());
  };
  for (const step::GivenVectors& given : {step::GivenVectors{0, 3, two, 0}, {0, 1, two, 2}, {0, 1, two, -1}, {0, 1, nullptr, 0}}) {
    with({given});
    EXPECT_EQ(failure(), "step plan: too few given vectors");
  }
  for (const step::GivenVectors& given : {step::GivenVectors{2, 2, two, 0}, {-1, 1, two, 0}, {0, 0, two, 0}}) {
    with({given});
    EXPECT_EQ(failure(), "step plan: given vectors out of their row");
  }
  with({{0, 2, two, 0}, {1, 1, two, 0}});
  EXPECT_EQ(failure(), "step plan: given vectors out of their row");
  plan_.rows[0].given_count = 3;
  EXPECT_EQ(failure(), "step plan: given vectors out of range");
  with({});
  plan_.rows[0].adapter = 1;
  EXPECT_EQ(failure(), "step plan: no such adapter");
}

TEST_F(LanguageModelSteps, RefuseAStartWithoutItsHistory) {
  plan_.tokens = {1, 314, 206};
  plan_.rows = {{.slot = 0, .count = 3, .block_count = 2, .output = step::RowOutput::kSample}};
  start(0, {.max_tokens = 5, .stop_token_ids = {}}, {.repetition_penalty = 1.5F});
  plan_.starts[0].generated = 1;
  EXPECT_EQ(failure(), "step plan: no history of what was generated");
}

// Spells a list of tokens, then allows the end of sequence.
class Spelling final : public Constraint {
 public:
  explicit Spelling(std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {}

  std::unique_ptr<ConstraintState> start(std::span<const TokenId> accepted) const override {
    auto state = std::make_unique<State>(*this);
    for (const TokenId token : accepted) state->accept(token);
    return state;
  }

 private:
  struct State final : ConstraintState {
    explicit State(const Spelling& spelling) : tokens(spelling.tokens_) {}
    void fill_mask(std::span<std::uint32_t> allowed) override {
      std::ranges::fill(allowed, 0U);
      const auto id = static_cast<std::size_t>(next < tokens.size() ? tokens[next] : 2);
      allowed[id / 32] |= 1U << (id % 32);
    }
    void accept(TokenId token) override {
      EXPECT_EQ(token, tokens.at(next));
      ++next;
    }
    std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<State>(*this); }
    const std::vector<TokenId>& tokens;
    std::size_t next = 0;
  };

  std::vector<TokenId> tokens_;
};

TEST(KvPool, TellsWhatItStillHasToTake) {
  const auto file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  auto model = LanguageModel::load(file, kernels::best_kernel_table(), {.max_batch = 4, .end_tokens = {}, .progress = {}}).value();
  EXPECT_EQ(model->untouched_kv_bytes(0), 0U);
  const std::uint64_t bytes = std::uint64_t{80} << 20;
  const auto blocks = static_cast<std::int32_t>(bytes / model->kv_groups().block_bytes());
  model->allocate_kv(blocks, LanguageModel::Prefault::kInBackground).value();
  const std::uint64_t promised = static_cast<std::uint64_t>(blocks) * model->kv_groups().block_bytes();
  EXPECT_LT(model->untouched_kv_bytes(promised), bytes / 2);  // the first pieces are there
  while (model->untouched_kv_bytes(promised) > 0) std::this_thread::yield();
}

TEST(ConstrainedRows, RunBesidePlainOnesAndEndWithTheirText) {
  const auto file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  auto model =
      LanguageModel::load(file, kernels::best_kernel_table(), {.threads = 2, .max_batch = 4, .end_tokens = {2}, .progress = {}}).value();
  model->allocate_kv(64).value();
  const DrivenRequest plain{
      .prompt = {1, 314, 206}, .sampling = {.seed = 3}, .stop = {.max_tokens = 8, .ignore_eos = true, .stop_token_ids = {}}};
  const std::vector<DrivenAnswer> alone = StepDriver(*model, 64).run({plain}, {});
  const std::vector<TokenId> text{17, 18, 19, 20};
  for (const float temperature : {0.0F, 1.0F}) {
    DrivenRequest constrained{
        .prompt = {1, 20}, .sampling = {.temperature = temperature}, .stop = {.max_tokens = 30, .ignore_eos = true, .stop_token_ids = {}}};
    constrained.constraint = std::make_shared<Spelling>(text);
    const std::vector<DrivenRequest> requests{plain, constrained, plain};
    for (const double preempt : {0.0, 0.4}) {
      const auto answers = StepDriver(*model, 64).run(requests, {.at_once = 3, .preempt = preempt, .seed = 5});
      EXPECT_EQ(answers[0].tokens, alone[0].tokens);
      EXPECT_EQ(answers[2].tokens, alone[0].tokens);
      EXPECT_EQ(answers[1].tokens, (std::vector<TokenId>{17, 18, 19, 20, 2}));
      EXPECT_EQ(answers[1].reason, FinishReason::kStop);
    }
  }
}

// Its mask throws once the answer has `length` tokens.
class Treacherous final : public Constraint {
 public:
  explicit Treacherous(int length) : length_(length) {}
  std::unique_ptr<ConstraintState> start(std::span<const TokenId>) const override { return std::make_unique<State>(length_); }

 private:
  class State final : public ConstraintState {
   public:
    explicit State(int length) : left_(length) {}
    void fill_mask(std::span<std::uint32_t> allowed) override {
      if (left_ == 0) throw std::runtime_error("treachery");
      std::ranges::fill(allowed, ~std::uint32_t{0});
    }
    void accept(TokenId) override { --left_; }
    std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<State>(*this); }

   private:
    int left_;
  };
  int length_;
};

TEST(ConstrainedRows, ThatThrowFailAlone) {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  const auto model =
      LanguageModel::load(file, kernels::best_kernel_table(), {.threads = 2, .max_batch = 4, .end_tokens = {2}, .progress = {}}).value();
  model->allocate_kv(64).value();
  const DrivenRequest plain{
      .prompt = {1, 314, 206, 1454}, .sampling = kGreedy, .stop = {.max_tokens = 12, .ignore_eos = true, .stop_token_ids = {}}};
  DrivenRequest treacherous = plain;
  treacherous.constraint = std::make_shared<Treacherous>(5);
  const auto alone = StepDriver(*model, 64).run({plain}, {});
  const auto answers = StepDriver(*model, 64).run({plain, treacherous, plain}, {.at_once = 3});
  EXPECT_EQ(answers[0].tokens, alone[0].tokens);
  EXPECT_EQ(answers[2].tokens, alone[0].tokens);
  EXPECT_EQ(answers[1].tokens.size(), 5U);
  EXPECT_EQ(answers[1].reason, FinishReason::kError);
}

// Memory of a step does not follow the batch: rows pass in groups, and so do their logits.
TEST(MemoryEstimate, HoldsNoBufferOfBatchTimesVocabulary) {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  const auto workspace = [&](std::int32_t max_batch) {
    return estimate_memory(file, kernels::best_kernel_table(), {.max_batch = max_batch, .end_tokens = {}, .progress = {}})
        .value()
        .workspace;
  };
  EXPECT_EQ(workspace(10'000), workspace(16));
}

TEST(ConstrainedRows, EndByAnErrorWhereNothingIsAllowed) {
  const auto file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  auto model = LanguageModel::load(file, kernels::best_kernel_table(), {.max_batch = 4, .end_tokens = {2}, .progress = {}}).value();
  model->allocate_kv(64).value();
  DrivenRequest request{.prompt = {1, 20},
                        .sampling = {.logit_bias = {{18, -std::numeric_limits<float>::infinity()}}},
                        .stop = {.max_tokens = 30, .stop_token_ids = {}}};
  request.constraint = std::make_shared<Spelling>(std::vector<TokenId>{17, 18});
  const auto answers = StepDriver(*model, 64).run({request}, {});
  EXPECT_EQ(answers[0].tokens, std::vector<TokenId>{17});
  EXPECT_EQ(answers[0].reason, FinishReason::kError);
}

}  // namespace
}  // namespace braid::model::test
