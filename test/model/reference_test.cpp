// Logits of tiny random models against those of Hugging Face transformers (see reference/make_reference.py).
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

namespace braid::model::test {
namespace {

struct Reference {
  std::vector<TokenId> ids;
  std::int32_t vocab = 0;
  std::vector<float> logits;
};

Reference read_reference(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::int32_t header[2] = {};
  EXPECT_GE(bytes.size(), sizeof(header)) << path;
  std::memcpy(header, bytes.data(), sizeof(header));
  Reference reference;
  reference.vocab = header[1];
  reference.ids.resize(static_cast<std::size_t>(header[0]));
  reference.logits.resize(reference.ids.size() * static_cast<std::size_t>(reference.vocab));
  EXPECT_EQ(bytes.size(), sizeof(header) + 4 * reference.ids.size() + 4 * reference.logits.size()) << path;
  std::memcpy(reference.ids.data(), bytes.data() + sizeof(header), 4 * reference.ids.size());
  std::memcpy(reference.logits.data(), bytes.data() + sizeof(header) + 4 * reference.ids.size(), 4 * reference.logits.size());
  return reference;
}

// Greedy tokens after a prompt; the script makes sure that none of them is a near tie.
struct Greedy {
  std::vector<TokenId> prompt;
  std::vector<TokenId> tokens;
};

Greedy read_greedy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::int32_t header[2] = {};
  EXPECT_GE(bytes.size(), sizeof(header)) << path;
  std::memcpy(header, bytes.data(), sizeof(header));
  Greedy greedy;
  greedy.prompt.resize(static_cast<std::size_t>(header[0]));
  greedy.tokens.resize(static_cast<std::size_t>(header[1]));
  EXPECT_EQ(bytes.size(), sizeof(header) + 4 * greedy.prompt.size() + 8 * greedy.tokens.size()) << path;
  std::memcpy(greedy.prompt.data(), bytes.data() + sizeof(header), 4 * greedy.prompt.size());
  std::memcpy(greedy.tokens.data(), bytes.data() + sizeof(header) + 4 * greedy.prompt.size(), 4 * greedy.tokens.size());
  return greedy;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0.0F;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float difference = std::fabs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // a NaN sticks
  }
  return largest;
}

class ReferenceLogits : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceLogits, AreReproducedOnEveryTier) {
  const std::string stem = std::string(BRAID_SOURCE_DIR "/test/model/reference/") + GetParam();
  const Reference reference = read_reference(stem + ".logits");
  const files::GgufFile file = files::GgufFile::open(stem + ".gguf").value();
  for (const auto* table : available_tables()) {
    ForwardHarness harness(file, *table);
    ASSERT_EQ(harness.model().vocab, reference.vocab);
    EXPECT_LE(largest_difference(harness.logits(reference.ids), reference.logits), 2e-3F) << table->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceLogits,
                         testing::Values("llama-biased", "llama-llama3", "llama-linear", "llama-longrope", "qwen2-yarn", "qwen3", "gpt2",
                                         "gemma2"),
                         [](const auto& suite) {
  std::string name = suite.param;
  std::erase(name, '-');
  return name;
});

class ReferenceGreedy : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceGreedy, TokensAreReproducedOnEveryTier) {
  const std::string stem = std::string(BRAID_SOURCE_DIR "/test/model/reference/") + GetParam();
  const Greedy greedy = read_greedy(stem + ".greedy");
  const files::GgufFile file = files::GgufFile::open(stem + ".gguf").value();
  for (const auto* table : available_tables()) {
    auto model =
        LanguageModel::load(file, *table, {.kv_type = kernels::KvType::kF32, .max_batch = 1, .end_tokens = {}, .progress = {}}).value();
    const std::int32_t blocks = 8 * model->kv_groups().count();
    model->allocate_kv(blocks).value();
    const DrivenRequest request{greedy.prompt,
                                {.temperature = 0.0F, .top_logprobs = 0},
                                {.max_tokens = static_cast<std::int32_t>(greedy.tokens.size()), .stop_token_ids = {}}};
    EXPECT_EQ(StepDriver(*model, blocks).run({request}, {}).front().tokens, greedy.tokens) << table->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceGreedy, testing::Values("gpt2", "gemma2"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace braid::model::test
