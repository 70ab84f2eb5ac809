// A small model as a drafter: what it guesses, what it keeps, and that it costs nobody but time.
#include "model/drafting/model_drafter.h"

#include "kernels/select.h"
#include "model/drafting/confidence.h"
#include "model/language_model.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>

namespace braid::model::test {
namespace {

constexpr std::int32_t kDrafterBlocks = 64;

std::unique_ptr<LanguageModel> load(std::shared_ptr<Drafter> drafter = {}) {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  return LanguageModel::load(file, kernels::best_kernel_table(),
                             {.threads = 1, .max_batch = 4, .end_tokens = {}, .progress = {}, .drafter = std::move(drafter)})
      .value();
}

std::shared_ptr<ModelDrafter> make_drafter(std::int32_t blocks = kDrafterBlocks) {
  auto drafter = std::make_shared<ModelDrafter>(load(), 4);
  drafter->allocate_kv(blocks).value();
  return drafter;
}

std::vector<TokenId> prompt_of(std::size_t length, TokenId key) {
  std::vector<TokenId> prompt(length);
  for (std::size_t i = 0; i < length; ++i) prompt[i] = 5 + (key * 131 + static_cast<TokenId>(i) * 7) % 1900;
  return prompt;
}

// The answer of the model alone, which has the drafter if any; `steps` are the passes that it took.
std::vector<TokenId> answer(LanguageModel& model, step::SlotId slot, const std::vector<TokenId>& prompt, const SamplingParams& sampling,
                            int& steps) {
  constexpr std::int32_t kTokens = 40;
  std::vector<TokenId> said;
  step::StepPlan plan;
  step::StepResult result;
  for (std::int32_t block = 0; block < kDrafterBlocks; ++block) plan.blocks.push_back(block);
  plan.tokens = prompt;
  plan.starts = {{.slot = slot, .sampling = sampling, .stop = {.max_tokens = kTokens, .ignore_eos = true, .stop_token_ids = {}}}};
  plan.starts[0].speculation.method = DraftMethod::kDraft;
  plan.starts[0].history_count = static_cast<std::uint32_t>(prompt.size());
  plan.rows = {
      {.slot = slot, .count = static_cast<std::int32_t>(prompt.size()), .block_count = kDrafterBlocks, .output = step::RowOutput::kSample}};
  for (steps = 0;; ++steps) {
    model.execute(plan, result);
    if (result.failure) std::rethrow_exception(result.failure);
    const step::RowResult row = result.rows.at(0);
    said.push_back(row.token);
    for (std::uint32_t i = 0; i < row.more_count; ++i) said.push_back(result.more.at(row.more_begin + i).token);
    if (row.finished) return said;
    plan.starts.clear();
    plan.rows = {{.slot = slot,
                  .position = static_cast<std::int32_t>(prompt.size() + said.size()) - 1,
                  .block_count = kDrafterBlocks,
                  .input = step::RowInput::kSampled,
                  .output = step::RowOutput::kVerify,
                  .drafts = 4}};
  }
}

std::unique_ptr<LanguageModel> with_pool(std::shared_ptr<Drafter> drafter) {
  auto model = load(std::move(drafter));
  model->allocate_kv(kDrafterBlocks).value();
  return model;
}

// Drafter and model are the same one here, so that both say the same, drawn or not.
TEST(ModelDrafter, OfTheSameMindGuessesRightAlsoAtATemperature) {
  const auto plain = with_pool(nullptr);
  const auto guessing = with_pool(make_drafter());
  int alone = 0;
  int together = 0;
  for (const SamplingParams& sampling :
       {SamplingParams{.temperature = 0.0F}, SamplingParams{.temperature = 0.9F, .top_p = 0.9F, .top_k = 40, .seed = 11, .choice = 2}}) {
    const std::vector<TokenId> prompt = prompt_of(30, 1);
    EXPECT_EQ(answer(*guessing, 1, prompt, sampling, together), answer(*plain, 1, prompt, sampling, alone));
    EXPECT_EQ(alone, 39);
    EXPECT_LT(together, 25) << "a guess that is not sure ends the row, the others are right";
  }
}

TEST(Confidence, IsWhatGuessesHaveComeTo) {
  Confidence confidence;
  EXPECT_NEAR(confidence.chance(-0.1F), 0.905, 0.001) << "the model's own word";
  EXPECT_NEAR(confidence.chance(-4.0F), 0.018, 0.001);
  for (int i = 0; i < 200; ++i) {
    confidence.observe(-4.0F, i % 5 > 0);
    confidence.observe(-0.1F, i % 2 > 0);
  }
  EXPECT_NEAR(confidence.chance(-4.1F), 0.8, 0.05) << "it is right more often than it thinks";
  EXPECT_NEAR(confidence.chance(-0.1F), 0.5, 0.05) << "and here less";
  EXPECT_NEAR(confidence.chance(-50.0F), 0.0, 1e-6) << "of others nothing is known";
}

std::vector<TokenId> drafted(ModelDrafter& drafter, step::SlotId slot, const std::vector<TokenId>& text, std::size_t room = 4) {
  std::vector<TokenId> guesses(room);
  DraftWish wish{.slot = slot, .text = text, .guesses = guesses};
  drafter.draft(std::span(&wish, 1));
  guesses.resize(wish.count);
  return guesses;
}

void start(ModelDrafter& drafter, step::SlotId slot) {
  drafter.start({.slot = slot, .sampling = {.temperature = 0.0F}, .stop = {.max_tokens = 9, .stop_token_ids = {}}});
}

// How far they go depends on how sure the drafter has learned to be.
void expect_like(const std::vector<TokenId>& guesses, const std::vector<TokenId>& expected, const char* why) {
  const std::size_t common = std::min(guesses.size(), expected.size());
  ASSERT_GT(common, 0U) << why;
  EXPECT_TRUE(std::equal(guesses.begin(), guesses.begin() + static_cast<std::ptrdiff_t>(common), expected.begin())) << why;
}

TEST(ModelDrafter, GuessesTheSameWhateverItsCachesHold) {
  const std::vector<TokenId> text = prompt_of(100, 3);
  std::vector<TokenId> longer = text;
  longer.push_back(77);
  const auto fresh = make_drafter();
  start(*fresh, 0);
  const std::vector<TokenId> expected = drafted(*fresh, 0, longer);
  ASSERT_FALSE(expected.empty());

  const auto drafter = make_drafter(16);  // of 16 tokens each: two texts and a bit
  start(*drafter, 0);
  drafted(*drafter, 0, text);
  expect_like(drafted(*drafter, 0, longer), expected, "its guesses were wrong");
  for (step::SlotId slot = 1; slot < 4; ++slot) {
    start(*drafter, slot);
    EXPECT_FALSE(drafted(*drafter, slot, prompt_of(100, static_cast<TokenId>(slot) + 10)).empty());
  }
  expect_like(drafted(*drafter, 0, longer), expected, "its blocks were given to others");
  start(*drafter, 0);
  start(*drafter, 2);
  expect_like(drafted(*drafter, 2, longer), expected, "by another slot");
}

// Two tokens of the large model for each of the small one's.
class Halves final : public TokenMap {
 public:
  void to_small(std::span<const TokenId> piece, std::vector<TokenId>& tokens) const override {
    for (const TokenId token : piece)
      if (token % 2 == 0) tokens.push_back(token / 2);
  }
  void to_large(std::span<const TokenId> piece, std::vector<TokenId>& tokens) const override {
    for (const TokenId token : piece) tokens.insert(tokens.end(), {2 * token, 2 * token + 1});
  }
};

TEST(ModelDrafter, WithOtherTokensGuessesByWhatTheyStandFor) {
  const auto own = make_drafter();
  ModelDrafter mapped(load(), 4, std::make_unique<Halves>());
  mapped.allocate_kv(kDrafterBlocks).value();
  start(*own, 0);
  start(mapped, 0);
  std::vector<TokenId> text = prompt_of(50, 4);
  for (int round = 0; round < 4; ++round) {
    std::vector<TokenId> large;
    Halves().to_large(text, large);
    std::vector<TokenId> expected;
    Halves().to_large(drafted(*own, 0, text), expected);
    expected.resize(std::min<std::size_t>(expected.size(), 4));
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(drafted(mapped, 0, large), expected) << "round " << round;
    text.push_back(expected[0] / 2);
  }
  const std::vector<TokenId> odd{1, 3, 5};
  EXPECT_TRUE(drafted(mapped, 0, odd).empty()) << "it stands for nothing";
}

TEST(ModelDrafter, CatchesUpWithALongPromptByAndBy) {
  const auto drafter = make_drafter();
  start(*drafter, 0);
  const std::vector<TokenId> text = prompt_of(900, 2);
  EXPECT_TRUE(drafted(*drafter, 0, text).empty());
  EXPECT_FALSE(drafted(*drafter, 0, text).empty());
}

TEST(ModelDrafter, DoesWithoutWhereItLacksBlocksOrContextOrKnowsNoSuchToken) {
  const auto drafter = make_drafter(4);
  start(*drafter, 0);
  EXPECT_TRUE(drafted(*drafter, 0, prompt_of(100, 1)).empty());
  EXPECT_FALSE(drafted(*drafter, 0, prompt_of(40, 1)).empty());
  std::vector<TokenId> unknown = prompt_of(20, 1);
  unknown.push_back(1'000'000);
  EXPECT_TRUE(drafted(*drafter, 0, unknown).empty());
  const auto roomy = make_drafter();
  start(*roomy, 0);
  const auto context = static_cast<std::size_t>(roomy->model().context_length());
  EXPECT_TRUE(drafted(*roomy, 0, prompt_of(context, 1)).empty());
}

}  // namespace
}  // namespace braid::model::test
