// Tiny random models as Hugging Face folders against what transformers computes for them (see reference/make_folders.py).
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <cmath>
#include <simdjson.h>

namespace braid::model::test {
namespace {

struct FolderReference {
  std::vector<TokenId> ids, greedy;
  std::vector<float> last_logits;
};

FolderReference read_folder_reference(const std::string& path) {
  simdjson::dom::parser parser;
  const simdjson::dom::element root = parser.load(path);
  FolderReference reference;
  for (const std::int64_t id : simdjson::dom::array(root["input_ids"])) reference.ids.push_back(static_cast<TokenId>(id));
  for (const std::int64_t id : simdjson::dom::array(root["greedy"])) reference.greedy.push_back(static_cast<TokenId>(id));
  for (const double logit : simdjson::dom::array(root["last_logits"])) reference.last_logits.push_back(static_cast<float>(logit));
  return reference;
}

class FolderReferences : public testing::TestWithParam<std::string> {};

// With exact arithmetic; the script makes sure that no greedy token is a near tie.
TEST_P(FolderReferences, AreReproducedOnEveryTier) {
  const FolderReference reference = read_folder_reference(folder_path(GetParam()) + "/reference.json");
  const files::GgufFile file = open_folder_model(GetParam());
  for (const auto* table : available_tables()) {
    ForwardHarness harness(file, *table, {.float_type = kernels::WeightType::kF32});
    const std::vector<float> logits = harness.logits(reference.ids);
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(reference.last_logits.size());
    for (std::size_t i = 0; i < reference.last_logits.size(); ++i)
      ASSERT_NEAR(last[static_cast<std::ptrdiff_t>(i)], reference.last_logits[i], 2e-3F) << table->name << ", token " << i;

    LoadOptions options{.kv_type = kernels::KvType::kF32, .max_batch = 1, .end_tokens = {}, .progress = {}};
    options.packing.float_type = kernels::WeightType::kF32;
    auto model = LanguageModel::load(file, *table, options).value();
    const std::int32_t blocks = 8 * model->kv_groups().count() + 2 * model->kv_groups().states.blocks();
    model->allocate_kv(blocks).value();
    const DrivenRequest request{reference.ids,
                                {.temperature = 0.0F, .top_logprobs = 0},
                                {.max_tokens = static_cast<std::int32_t>(reference.greedy.size()), .stop_token_ids = {}}};
    EXPECT_EQ(StepDriver(*model, blocks).run({request}, {}).front().tokens, reference.greedy) << table->name;
  }
}

// Records on disk hold no states.
TEST(FolderModels, RecurrentOnesRefuseTheDiskCache) {
  const auto loaded = LanguageModel::load(open_folder_model("lfm2"), kernels::best_kernel_table(),
                                          {.kv_grouping = ModelShape::Grouping::kOne, .end_tokens = {}, .progress = {}});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("--kv-disk"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, FolderReferences, testing::ValuesIn(folder_models()), folder_test_name);

}  // namespace
}  // namespace braid::model::test
