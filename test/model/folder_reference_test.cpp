// Tiny random models as Hugging Face folders against what transformers computes for them (see reference/make_folders.py).
#include "files/hf_folder.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <cmath>
#include <filesystem>
#include <simdjson.h>

namespace braid::model::test {
namespace {

const std::string kFolders = BRAID_SOURCE_DIR "/test/model/reference/folders/";

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

files::GgufFile open_folder(const std::string& path) {
  const files::HfFolder folder = files::HfFolder::open(path).value();
  return files::GgufFile::from_contents(read_folder(folder).value());
}

std::vector<std::string> folder_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolders)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

class FolderReferences : public testing::TestWithParam<std::string> {};

// With exact arithmetic; the script makes sure that no greedy token is a near tie.
TEST_P(FolderReferences, AreReproducedOnEveryTier) {
  const std::string folder = kFolders + GetParam();
  const FolderReference reference = read_folder_reference(folder + "/reference.json");
  const files::GgufFile file = open_folder(folder);
  for (const auto* table : available_tables()) {
    ForwardHarness harness(file, *table, {.float_type = kernels::WeightType::kF32});
    const std::vector<float> logits = harness.logits(reference.ids);
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(reference.last_logits.size());
    for (std::size_t i = 0; i < reference.last_logits.size(); ++i)
      ASSERT_NEAR(last[static_cast<std::ptrdiff_t>(i)], reference.last_logits[i], 2e-3F) << table->name << ", token " << i;

    LoadOptions options{.kv_type = kernels::KvType::kF32, .max_batch = 1, .end_tokens = {}, .progress = {}};
    options.packing.float_type = kernels::WeightType::kF32;
    auto model = LanguageModel::load(file, *table, options).value();
    const std::int32_t blocks = 8 * model->kv_groups().count();
    model->allocate_kv(blocks).value();
    const DrivenRequest request{reference.ids,
                                {.temperature = 0.0F, .top_logprobs = 0},
                                {.max_tokens = static_cast<std::int32_t>(reference.greedy.size()), .stop_token_ids = {}}};
    EXPECT_EQ(StepDriver(*model, blocks).run({request}, {}).front().tokens, reference.greedy) << table->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FolderReferences, testing::ValuesIn(folder_names()), [](const auto& suite) {
  std::string name = suite.param;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
});

}  // namespace
}  // namespace braid::model::test
