// Rows that verify drafted tokens give the answers of rows that do not, whatever is drafted; passes that are left between layers and taken
// up again give the same bits.
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/language_model.h"
#include "model/verified_rows.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>

namespace braid::model::test {
namespace {

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
  const std::function<void()> between = [&] {
    if (++times % 7 == 0) answer(*other, {.temperature = 1.0F, .seed = 10}, 0);
  };
  const auto model = load({.threads = 2, .end_tokens = {}, .progress = {}});
  EXPECT_TRUE(answer(*model, sampling, 0, DraftMethod::kDraft, &between) == alone);
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
