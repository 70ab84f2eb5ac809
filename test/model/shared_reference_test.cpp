// Greedy answers and logits that others computed. The files are not part of the repository: BRAID_TEST_DATA names their folder.
#include "files/hf_folder.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <cstdlib>
#include <simdjson.h>

namespace braid::model::test {
namespace {

std::vector<TokenId> ids_of(simdjson::dom::element array) {
  std::vector<TokenId> ids;
  for (const std::int64_t id : array.get_array()) ids.push_back(static_cast<TokenId>(id));
  return ids;
}

class SharedReference : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("BRAID_TEST_DATA");
    if (folder == nullptr) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
    models_ = std::string(folder) + "/models/";
  }

  simdjson::dom::element json(const std::string& name) { return parser_.load(models_ + name); }

  std::vector<DrivenAnswer> greedy(const files::GgufFile& file, const std::vector<std::vector<TokenId>>& prompts, std::int32_t tokens,
                                   kernels::KvType kv_type, std::vector<TokenId> end_tokens, const Packing& packing = {}) {
    auto model =
        LanguageModel::load(
            file, kernels::best_kernel_table(),
            {.threads = 2, .kv_type = kv_type, .packing = packing, .max_batch = 16, .end_tokens = std::move(end_tokens), .progress = {}})
            .value();
    model->allocate_kv(256).value();
    std::vector<DrivenRequest> requests;
    for (const auto& prompt : prompts)
      requests.push_back({prompt, {.temperature = 0.0F, .top_logprobs = 0}, {.max_tokens = tokens, .stop_token_ids = {}}});
    return StepDriver(*model, 256).run(requests, {.at_once = 16});
  }

  std::string models_;
  simdjson::dom::parser parser_;
};

TEST_F(SharedReference, DemoAnswersAreThoseOfTransformers) {
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-q8_0.gguf").value();
  const simdjson::dom::element reference = json("demo-reference.json");
  std::vector<std::vector<TokenId>> prompts, expected;
  for (const simdjson::dom::element item : reference["q8_0"].get_array()) {
    prompts.push_back(ids_of(item["prompt_ids"]));
    expected.push_back(ids_of(item["greedy_ids"]));
  }
  const auto answers = greedy(file, prompts, 64, kernels::KvType::kF32, {2});
  int exact = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].tokens == expected[i]) {
      exact += 1;
      continue;
    }
    // Activations of 8 bits may part from float32 where two tokens are as good as equal.
    const auto parted = std::ranges::mismatch(answers[i].tokens, expected[i]).in1 - answers[i].tokens.begin();
    EXPECT_GE(parted, 13) << "prompt " << i;
  }
  RecordProperty("exact_answers", exact);
  EXPECT_GE(exact, 9) << "of " << answers.size();
}

// Folders as the hub has them: bf16 with exact arithmetic.
TEST_F(SharedReference, DemoAnswersOfTheFolderAreThoseOfTransformers) {
  const files::HfFolder folder = files::HfFolder::open(models_ + "demo-hf").value();
  const files::GgufFile file = files::GgufFile::from_contents(read_folder(folder).value());
  std::vector<std::vector<TokenId>> prompts, expected;
  for (const simdjson::dom::element item : json("demo-reference.json")["bf16"].get_array()) {
    prompts.push_back(ids_of(item["prompt_ids"]));
    expected.push_back(ids_of(item["greedy_ids"]));
  }
  const auto answers = greedy(file, prompts, 64, kernels::KvType::kF32, {2}, {.float_type = kernels::WeightType::kF32});
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].tokens, expected[i]) << "prompt " << i;
}

class StoriesReference : public SharedReference, public testing::WithParamInterface<bool> {};

TEST_P(StoriesReference, ContinuationsAndLogitsAreReproduced) {
  const bool from_folder = GetParam();
  const files::GgufFile file =
      from_folder ? files::GgufFile::from_contents(read_folder(files::HfFolder::open(models_ + "stories260K-hf").value()).value())
                  : files::GgufFile::open(models_ + "stories260K.gguf").value();
  ForwardHarness harness(file, kernels::best_kernel_table());
  std::vector<std::vector<TokenId>> prompts, expected;
  for (const simdjson::dom::element item : json("stories260K-reference.json")["cases"].get_array()) {
    prompts.push_back(ids_of(item["prompt_ids"]));
    expected.push_back(ids_of(item["greedy_ids"]));
    const std::vector<float> all = harness.logits(prompts.back());
    const float* last = all.data() + (prompts.back().size() - 1) * static_cast<std::size_t>(harness.model().vocab);
    for (const double logit : item["last_prompt_logits"].get_array()) EXPECT_NEAR(*last++, logit, 2e-3);
  }
  const auto answers = greedy(file, prompts, static_cast<std::int32_t>(expected.front().size()), kernels::KvType::kF32, {});
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].tokens, expected[i]) << "prompt " << i;
}

INSTANTIATE_TEST_SUITE_P(Models, StoriesReference, testing::Bool(),
                         [](const auto& suite) { return suite.param ? "FromTheFolder" : "FromTheFile"; });

}  // namespace
}  // namespace braid::model::test
