// Rows that verify drafted tokens give the answers of rows that do not, whatever is drafted; passes that are left between layers and taken
// up again give the same bits.
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/language_model.h"

#include <gtest/gtest.h>
#include <memory>
#include <random>

namespace braid::model::test {
namespace {

constexpr std::int32_t kTokens = 40;
const std::vector<TokenId> kPrompt = {1, 314, 206, 1454, 8, 2, 206, 1, 319, 206};

// Drafts from an answer that it knows, each token wrong with some chance.
class KnowingDrafter final : public Drafter {
 public:
  KnowingDrafter(std::vector<TokenId> answer, double wrong, TokenId vocab = 2000)
      : answer_(std::move(answer)), wrong_(wrong), vocab_(vocab) {}

  void draft(std::span<DraftWish> wishes) override {
    for (DraftWish& wish : wishes) {
      const std::size_t at = wish.text.size() - kPrompt.size();
      EXPECT_EQ(wish.text.back(), answer_.at(at - 1));
      for (; wish.count < wish.guesses.size() && at + wish.count < answer_.size(); ++wish.count) {
        const TokenId right = answer_[at + wish.count];
        wish.guesses[wish.count] = std::uniform_real_distribution(0.0, 1.0)(random_) < wrong_ ? (right + 1) % vocab_ : right;
      }
    }
  }

 private:
  std::vector<TokenId> answer_;
  double wrong_;
  TokenId vocab_;
  std::mt19937 random_{7};
};

struct Said {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<float> top;
  int steps = 0;

  bool operator==(const Said& other) const { return tokens == other.tokens && logprobs == other.logprobs && top == other.top; }
};

std::unique_ptr<LanguageModel> load_from(const files::GgufFile& file, LoadOptions options) {
  options.max_batch = 4;
  auto model = LanguageModel::load(file, kernels::best_kernel_table(), std::move(options)).value();
  model->allocate_kv(4 * model->kv_groups().count() + 2 * model->kv_groups().states.blocks() + 4).value();
  return model;
}

class VerifiedRows : public testing::Test {
 protected:
  static std::unique_ptr<LanguageModel> load(LoadOptions options) {
    static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
    return load_from(file, std::move(options));
  }

  // By rows that verify up to `drafts` tokens; 0: by plain ones. A recurrent model's state is copied behind each.
  static Said answer(LanguageModel& model, const SamplingParams& sampling, std::int32_t drafts) {
    Said said;
    step::StepPlan plan;
    step::StepResult result;
    const std::int32_t state_blocks = model.kv_groups().states.blocks();
    const auto states = static_cast<std::uint32_t>(4 * model.kv_groups().count());
    for (std::uint32_t i = 0; i < states + 2 * static_cast<std::uint32_t>(state_blocks); ++i)
      plan.blocks.push_back(static_cast<std::int32_t>(i ^ 1U));  // not in order
    plan.tokens = kPrompt;
    for (TokenId& token : plan.tokens) token %= model.shape().vocab;
    plan.starts = {{.slot = 1, .sampling = sampling, .stop = {.max_tokens = kTokens, .ignore_eos = true, .stop_token_ids = {}}}};
    if (drafts > 0) plan.starts[0].speculation.method = DraftMethod::kDraft;
    plan.starts[0].history_count = step::needs_history(plan.starts[0]) ? static_cast<std::uint32_t>(kPrompt.size()) : 0;
    plan.rows = {{.slot = 1,
                  .count = static_cast<std::int32_t>(kPrompt.size()),
                  .block_count = 4,
                  .output = step::RowOutput::kSample,
                  .state_begin = states}};
    auto least = static_cast<std::int32_t>(kPrompt.size());
    for (bool finished = false; !finished;) {
      model.execute(plan, result);
      if (result.failure) std::rethrow_exception(result.failure);
      const step::RowResult row = result.rows.at(0);
      EXPECT_TRUE(row.sampled);
      ++said.steps;
      add(said, row, result);
      for (std::uint32_t i = 0; i < row.more_count; ++i) add(said, result.more.at(row.more_begin + i), result);
      finished = row.finished;
      if (plan.rows[0].output == step::RowOutput::kVerify) least = row.position + 1 + static_cast<std::int32_t>(row.more_count);
      EXPECT_EQ(least, static_cast<std::int32_t>(kPrompt.size() + said.tokens.size()) - 1);
      plan.starts.clear();
      // The scheduler knows the least position only, of the step before.
      const std::int32_t slack = drafts > 0 ? std::min(least - static_cast<std::int32_t>(kPrompt.size()), drafts) : 0;
      plan.rows = {{.slot = 1,
                    .position = least - slack,
                    .block_count = 4,
                    .input = step::RowInput::kSampled,
                    .output = drafts > 0 ? step::RowOutput::kVerify : step::RowOutput::kSample,
                    .slack = slack,
                    .drafts = drafts,
                    .state_begin = states}};
      if (drafts == 0) ++least;
      if (state_blocks == 0 || drafts == 0) continue;
      plan.snapshots = {{step::kBehindRow, states + static_cast<std::uint32_t>(state_blocks)}};
      plan.rows[0].snapshot_count = 1;
    }
    if (drafts > 0)
      for (std::int32_t part = 0; part < state_blocks; ++part) {
        const auto own = states + static_cast<std::uint32_t>(part);
        EXPECT_EQ(saved(model, plan.blocks[own], part), saved(model, plan.blocks[own + static_cast<std::uint32_t>(state_blocks)], part));
      }
    return said;
  }

  // What a block holds as part of a state.
  static std::vector<std::byte> saved(LanguageModel& model, std::int32_t block, std::int32_t part) {
    std::vector<std::byte> bytes(model.kv_groups().block_bytes());
    step::StepPlan plan;
    step::StepResult result;
    plan.saves = {{block, bytes.data(), step::kStateGroup, part}};
    model.execute(plan, result);
    return bytes;
  }

 private:
  template <class Answered>
  static void add(Said& said, const Answered& answered, const step::StepResult& result) {
    said.tokens.push_back(answered.token);
    said.logprobs.push_back(answered.logprob);
    for (std::uint32_t i = 0; i < answered.top_count; ++i) said.top.push_back(result.top.at(answered.top_begin + i).logprob);
  }
};

TEST_F(VerifiedRows, GiveTheAnswerOfPlainOnesWhateverIsDrafted) {
  const SamplingParams ways[] = {{.temperature = 0.0F, .top_logprobs = 2},
                                 {.temperature = 1.0F, .seed = 3, .repetition_penalty = 1.2F, .top_logprobs = 1},
                                 {.temperature = 1.0F, .seed = 4, .mirostat = 2, .top_logprobs = 0}};
  for (const SamplingParams& sampling : ways) {
    const Said plain = answer(*load({.end_tokens = {}, .progress = {}}), sampling, 0);
    ASSERT_EQ(plain.tokens.size(), static_cast<std::size_t>(kTokens));
    for (const double wrong : {0.0, 0.3, 1.0}) {
      for (const int threads : {1, 3}) {
        for (const std::int32_t pass_rows : {2, 512}) {  // a row may fall into several passes
          auto model = load({.threads = threads,
                             .pass_rows = pass_rows,
                             .end_tokens = {},
                             .progress = {},
                             .drafter = std::make_shared<KnowingDrafter>(plain.tokens, wrong)});
          const Said verified = answer(*model, sampling, 5);
          EXPECT_TRUE(verified == plain) << wrong << ", " << threads << " threads, " << pass_rows << " rows in a pass";
          if (wrong == 0.0) {
            EXPECT_LE(verified.steps, 1 + (kTokens - 1 + 5) / 6) << "six tokens a step";
          } else if (wrong == 1.0) {
            EXPECT_EQ(verified.steps, kTokens);
          }
        }
      }
    }
  }
}

// Whose states cannot go back behind a wrong guess.
class VerifiedStates : public VerifiedRows, public testing::WithParamInterface<std::string> {};

TEST_P(VerifiedStates, GoOnBehindWhatWasRight) {
  const files::GgufFile file = open_folder_model(GetParam());
  const SamplingParams ways[] = {{.temperature = 0.0F, .top_logprobs = 2}, {.temperature = 1.0F, .seed = 3, .top_logprobs = 1}};
  for (const SamplingParams& sampling : ways) {
    const auto plain_model = load_from(file, {.end_tokens = {}, .progress = {}});
    ASSERT_GT(plain_model->kv_groups().states.blocks(), 0);
    const Said plain = answer(*plain_model, sampling, 0);
    ASSERT_EQ(plain.tokens.size(), static_cast<std::size_t>(kTokens));
    for (const double wrong : {0.0, 0.3, 1.0}) {
      for (const int threads : {1, 3}) {
        for (const std::int32_t pass_rows : {6, 512}) {  // the prompt takes several passes, what is kept of a row's guesses one
          auto model = load_from(file, {.threads = threads,
                                        .pass_rows = pass_rows,
                                        .state_drafts = 5,
                                        .end_tokens = {},
                                        .progress = {},
                                        .drafter = std::make_shared<KnowingDrafter>(plain.tokens, wrong, plain_model->shape().vocab)});
          const Said verified = answer(*model, sampling, 5);
          EXPECT_TRUE(verified == plain) << wrong << ", " << threads << " threads, " << pass_rows << " rows in a pass";
          if (wrong == 0.0) {
            EXPECT_LE(verified.steps, 1 + (kTokens - 1 + 5) / 6) << "six tokens a step";
          } else if (wrong == 1.0) {
            EXPECT_EQ(verified.steps, kTokens);
          }
        }
      }
    }
  }
}

TEST_P(VerifiedStates, AreGuessedNoFurtherThanIsKept) {
  const files::GgufFile file = open_folder_model(GetParam());
  const SamplingParams greedy{.temperature = 0.0F};
  const Said plain = answer(*load_from(file, {.end_tokens = {}, .progress = {}}), greedy, 0);
  for (const std::int32_t kept : {0, 2}) {
    const auto model = load_from(
        file, {.state_drafts = kept, .end_tokens = {}, .progress = {}, .drafter = std::make_shared<KnowingDrafter>(plain.tokens, 0.0)});
    const Said verified = answer(*model, greedy, 5);
    EXPECT_TRUE(verified == plain);
    EXPECT_EQ(verified.steps, kept == 0 ? kTokens : 1 + (kTokens - 1 + kept) / (kept + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, VerifiedStates,
                         testing::Values("lfm2", "granite4", "qwen3.5", "falcon-h1", "mamba2", "nemotron-h", "qwen3-next"),
                         folder_test_name);

TEST_F(VerifiedRows, WithoutADrafterAreDecodeRows) {
  const SamplingParams greedy{.temperature = 0.0F};
  const auto model = load({.end_tokens = {}, .progress = {}});
  const Said plain = answer(*model, greedy, 0);
  EXPECT_TRUE(answer(*model, greedy, 4) == plain);
}

TEST_F(VerifiedRows, AreRefusedWhereTheirSlotIsNot) {
  const auto model = load({.end_tokens = {}, .progress = {}});
  step::StepPlan plan;
  step::StepResult result;
  plan.blocks = {0};
  plan.tokens = kPrompt;
  plan.starts = {{.slot = 0, .sampling = {}, .stop = {.max_tokens = 9, .stop_token_ids = {}}}};
  plan.rows = {{.slot = 0, .count = 10, .block_count = 1, .output = step::RowOutput::kSample}};
  model->execute(plan, result);
  ASSERT_FALSE(result.failure);
  plan.starts.clear();
  plan.rows = {{.slot = 0,
                .position = 11,
                .block_count = 1,
                .input = step::RowInput::kSampled,
                .output = step::RowOutput::kVerify,
                .slack = 2,
                .drafts = 1}};
  model->execute(plan, result);
  EXPECT_TRUE(result.failure);
}

// Between any two layers another model computes a step of its own.
TEST_F(VerifiedRows, OtherWorkBetweenTwoLayersChangesNoBit) {
  const SamplingParams sampling{.temperature = 1.0F, .seed = 9, .top_logprobs = 3};
  const auto other = load({.end_tokens = {}, .progress = {}});
  const Said alone = answer(*other, sampling, 0);
  int times = 0;
  const auto model = load({.threads = 2, .end_tokens = {}, .progress = {}, .between_layers = [&] {
                             if (++times % 7 == 0) answer(*other, {.temperature = 1.0F, .seed = 10}, 0);
                           }});
  EXPECT_TRUE(answer(*model, sampling, 0) == alone);
  EXPECT_GE(times, kTokens);
}

TEST(Passes, LeftBetweenLayersAndTakenUpAgainGiveTheSameBits) {
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  ForwardHarness left(file, kernels::best_kernel_table());
  ForwardHarness other(file, kernels::best_kernel_table());
  std::vector<TokenId> one = kPrompt;
  std::vector<TokenId> two(50, 7);
  const std::vector<float> whole = other.logits(one);
  int pieces = 0;
  const std::vector<float> in_pieces = left.logits_in_pieces(one, [&] {
    ++pieces;
    other.logits(two);
  });
  EXPECT_EQ(in_pieces, whole);
  EXPECT_EQ(pieces, static_cast<int>(left.model().layers.size()) - 1);
}

}  // namespace
}  // namespace braid::model::test
