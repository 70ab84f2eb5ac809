// Tiny random models that see, from pixels to tokens, against what transformers computes for them (reference/make_images.py).
#include "model/image_models.h"

#include "kernels/select.h"
#include "model/families/families.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <algorithm>
#include <cmath>

namespace braid::model::test {
namespace {

// A folder's tower and language model, which compute with float32 alone.
class SeeingModel {
 public:
  SeeingModel(const std::string& name, const kernels::KernelTable& table, kernels::ThreadTeam& team)
      : tower_(load_tower(name, table, team)) {
    LoadOptions options{.kv_type = kernels::KvType::kF32, .max_batch = 4, .end_tokens = {}, .progress = {}};
    options.team = &team;
    options.packing.float_type = kernels::WeightType::kF32;
    options.media_both_ways = tower_->shape().both_ways;
    options.media_layers = static_cast<std::int32_t>(tower_->shape().deep.size());
    const files::GgufFile file = files::GgufFile::from_contents(read_folder(files::HfFolder::open(image_model_path(name)).value()).value());
    model_ = LanguageModel::load(file, table, options).value();
    blocks_ = 4 * (16 * model_->kv_groups().count() + 2 * model_->kv_groups().states.blocks());
    model_->allocate_kv(blocks_).value();
  }

  DrivenRequest ask(const ImageReference& reference) {
    DrivenRequest request{reference.ids,
                          {.temperature = 0.0F, .top_logprobs = kMaxTopLogprobs},
                          {.max_tokens = static_cast<std::int32_t>(reference.greedy.size()), .stop_token_ids = {}}};
    request.media = reference.spans();
    request.media_whole = tower_->shape().both_ways;
    if (tower_->shape().grid_positions) {
      const std::int32_t unit = tower_->shape().patch * tower_->shape().connector.side;
      request.media_grids = {{reference.pixels.tiles.front().height / unit, reference.pixels.tiles.front().width / unit}};
    }
    request.media_vectors = std::make_shared<const std::vector<float>>(encode_image(*tower_, reference.pixels));
    return request;
  }

  std::vector<DrivenAnswer> run(const std::vector<DrivenRequest>& requests, const Schedule& schedule) {
    return StepDriver(*model_, blocks_).run(requests, schedule);
  }

 private:
  std::unique_ptr<ImageTower> tower_;
  std::unique_ptr<LanguageModel> model_;
  std::int32_t blocks_ = 0;
};

float log_sum(const std::vector<float>& logits) {
  const float top = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(top));
  return top + static_cast<float>(std::log(sum));
}

class ImageModels : public testing::TestWithParam<std::string> {};

TEST_P(ImageModels, GiveTheReferencesAnswersOnEveryTier) {
  const ImageReference reference = read_image_reference(GetParam());
  // Where the two best tokens are as good as equal, any may follow.
  const auto sure = std::ranges::find_if(reference.margins, [](float margin) { return margin < 0.01F; }) - reference.margins.begin();
  ASSERT_GE(sure, 1);
  for (const auto* table : available_tables()) {
    kernels::ThreadTeam team(2);
    SeeingModel model(GetParam(), *table, team);
    DrivenAnswer answer = model.run({model.ask(reference)}, {}).front();
    ASSERT_GE(answer.top.size(), static_cast<std::size_t>(kMaxTopLogprobs));
    const float sum = log_sum(reference.last_logits);
    for (const TokenLogprob& top : std::span(answer.top).first(kMaxTopLogprobs))
      EXPECT_NEAR(top.logprob, reference.last_logits[static_cast<std::size_t>(top.id)] - sum, 2e-3) << table->name << ", " << top.id;
    ASSERT_EQ(answer.tokens.size(), reference.greedy.size());
    for (std::ptrdiff_t i = 0; i < sure; ++i)
      ASSERT_EQ(answer.tokens[static_cast<std::size_t>(i)], reference.greedy[static_cast<std::size_t>(i)])
          << table->name << ", token " << i;
  }
}

// In slices, beside others, after preemptions: the same tokens and log-probabilities to the last bit.
TEST_P(ImageModels, GiveTheSameBitsUnderAnySchedule) {
  const ImageReference reference = read_image_reference(GetParam());
  kernels::ThreadTeam one(1);
  kernels::ThreadTeam three(3);
  SeeingModel alone(GetParam(), kernels::best_kernel_table(), one);
  SeeingModel shared(GetParam(), kernels::best_kernel_table(), three);
  const DrivenRequest request = alone.ask(reference);
  const DrivenAnswer expected = alone.run({request}, {}).front();
  DrivenRequest text = request;  // of tokens that are nobody's vectors
  text.media.clear();
  text.media_grids.clear();
  const DrivenAnswer plain = alone.run({text}, {}).front();
  EXPECT_NE(plain.logprobs, expected.logprobs);
  for (const Schedule& schedule : {Schedule{.slice = 5}, Schedule{.at_once = 3, .shuffle = true, .slice = 9, .preempt = 0.2, .seed = 3}}) {
    const std::vector<DrivenAnswer> answers = shared.run({shared.ask(reference), text, request}, schedule);
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      EXPECT_EQ(answers[i].tokens, expected.tokens);
      EXPECT_EQ(answers[i].logprobs, expected.logprobs);
    }
    EXPECT_EQ(answers[1].logprobs, plain.logprobs);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ImageModels, testing::ValuesIn(image_models()), folder_test_name);

}  // namespace
}  // namespace braid::model::test
