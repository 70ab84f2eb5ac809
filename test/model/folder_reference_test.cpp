// Tiny random models as Hugging Face folders against what transformers computes for them (see reference/make_folders.py).
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"
#include "support/folder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <simdjson.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// With exact arithmetic; the script makes sure that no greedy token is a near tie.
void expect_reference(const std::string& name, const files::GgufFile& file) {
  const FolderReference reference = read_folder_reference(folder_path(name) + "/reference.json");
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

class FolderReferences : public testing::TestWithParam<std::string> {};

TEST_P(FolderReferences, AreReproducedOnEveryTier) { expect_reference(GetParam(), open_folder_model(GetParam())); }

// How far logits may be off where nothing asks for exact arithmetic: matrices in the type that they are stored in, keys and values in the
// tier's own.
float default_bound(const std::string& name) {
  if (name == "gpt-oss-mxfp4") return 8e-2F;  // what meets its experts' 4 bits is rounded to 8
  if (name == "falcon-h1") return 4e-2F;      // matrices with its multipliers in them are bf16 again
  return 2e-2F;
}

// On one tier: they have the same bits. But for AMX, whose products of bf16 round what meets the matrices, and which is not held to this.
TEST_P(FolderReferences, AreNearWithTheDefaults) {
  const FolderReference reference = read_folder_reference(folder_path(GetParam()) + "/reference.json");
  const kernels::KernelTable* table = nullptr;
  for (const auto* each : available_tables())
    if (each->isa != kernels::Isa::kAmx) table = each;
  const std::vector<float> logits = ForwardHarness(open_folder_model(GetParam()), *table, {}, table->kv_type).logits(reference.ids);
  const auto last = logits.end() - static_cast<std::ptrdiff_t>(reference.last_logits.size());
  for (std::size_t i = 0; i < reference.last_logits.size(); ++i)
    ASSERT_NEAR(last[static_cast<std::ptrdiff_t>(i)], reference.last_logits[i], default_bound(GetParam())) << "token " << i;
}

// The same models as llama.cpp's converter writes them.
class ConvertedReferences : public testing::TestWithParam<std::string> {};

TEST_P(ConvertedReferences, AreReproducedOnEveryTier) {
  expect_reference(GetParam(), files::GgufFile::open(BRAID_SOURCE_DIR "/test/model/reference/converted/" + GetParam() + ".gguf").value());
}

std::vector<std::string> converted_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/test/model/reference/converted"))
    names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ConvertedReferences, testing::ValuesIn(converted_models()), folder_test_name);

// Vectors of a prompt by all three poolings, whole and in slices.
class EmbeddingReferences : public testing::TestWithParam<std::string> {};

TEST_P(EmbeddingReferences, AreReproduced) {
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.load(BRAID_SOURCE_DIR "/test/model/reference/embeddings.json");
  const simdjson::dom::element reference = all[GetParam()];
  std::vector<TokenId> ids;
  for (const std::int64_t id : simdjson::dom::array(reference["ids"])) ids.push_back(static_cast<TokenId>(id));
  LoadOptions options{.kv_type = kernels::KvType::kF32, .max_batch = 1, .end_tokens = {}, .progress = {}};
  options.packing.float_type = kernels::WeightType::kF32;
  auto model = LanguageModel::load(open_folder_model(GetParam()), kernels::best_kernel_table(), options).value();
  const std::int32_t blocks = 8 * model->kv_groups().count() + 2 * model->kv_groups().states.blocks();
  model->allocate_kv(blocks).value();
  StepDriver driver(*model, blocks);
  for (const auto& [name, pooling] : {std::pair("last", Pooling::kLast), {"mean", Pooling::kMean}, {"cls", Pooling::kFirst}}) {
    DrivenRequest request{ids, {}, {.max_tokens = 0, .stop_token_ids = {}}};
    request.pooling = pooling;
    const std::vector<float> whole = driver.run({request}, {}).front().vector;
    EXPECT_EQ(driver.run({request}, {.slice = 7}).front().vector, whole) << name;
    const simdjson::dom::array expected = reference[name];
    ASSERT_EQ(whole.size(), expected.size());
    std::size_t i = 0;
    for (const double value : expected) ASSERT_NEAR(whole[i++], value, 2e-4) << name << ", number " << i;
  }
}

std::vector<std::string> embedded_models() {
  simdjson::dom::parser parser;
  std::vector<std::string> names;
  for (const auto& entry : simdjson::dom::object(parser.load(BRAID_SOURCE_DIR "/test/model/reference/embeddings.json")))
    names.emplace_back(entry.key);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddingReferences, testing::ValuesIn(embedded_models()), folder_test_name);

// The model's own embeddings of some tokens, scaled as it scales them.
MediaVectors embeddings_of(const files::GgufFile& file, std::span<const TokenId> ids) {
  const ModelShape shape = describe_model(file).value();
  const files::GgufTensor& tensor = *file.tensor("token_embd.weight");
  EXPECT_EQ(tensor.type, 30U) << "bf16";
  std::vector<float> vectors;
  for (const TokenId id : ids)
    for (std::int32_t i = 0; i < shape.embedding; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, tensor.bytes.data() + (std::size_t{2} * static_cast<std::size_t>(id * shape.embedding + i)), 2);
      vectors.push_back(std::bit_cast<float>(std::uint32_t{bits} << 16) * shape.input.scale);
    }
  return std::make_shared<const std::vector<float>>(std::move(vectors));
}

// With scaled embeddings, learned positions, a norm over them, and a recurrent state: whatever tokens stand there.
TEST(FolderModels, ComputeFromTheVectorsOfTokensWhatTheyComputeFromTheTokens) {
  for (const std::string name : {"qwen3", "gemma", "gpt2", "bloom", "granite", "lfm2"}) {
    const files::GgufFile file = open_folder_model(name);
    const std::vector<TokenId> ids = read_folder_reference(folder_path(name) + "/reference.json").ids;
    LoadOptions options{.max_batch = 2, .end_tokens = {}, .progress = {}};
    options.packing.float_type = kernels::WeightType::kF32;
    auto model = LanguageModel::load(file, kernels::best_kernel_table(), options).value();
    const std::int32_t blocks = 2 * (8 * model->kv_groups().count() + 2 * model->kv_groups().states.blocks());
    model->allocate_kv(blocks).value();
    StepDriver driver(*model, blocks);
    const DrivenRequest plain{ids, {.temperature = 0.0F, .top_logprobs = 0}, {.max_tokens = 10, .stop_token_ids = {}}};
    DrivenRequest given = plain;
    given.media = {{0, 5, {}}, {11, 1, {}}, {20, 17, {}}};
    std::vector<TokenId> shown;
    for (const MediaSpan& span : given.media)
      for (std::int32_t i = span.first; i < span.first + span.count; ++i)
        shown.push_back(std::exchange(given.prompt[static_cast<std::size_t>(i)], 3));
    given.media_vectors = embeddings_of(file, shown);
    const DrivenAnswer expected = driver.run({plain}, {}).front();
    for (const Schedule& schedule : {Schedule{}, Schedule{.at_once = 2, .slice = 6, .preempt = 0.1}}) {
      for (const DrivenAnswer& answer : driver.run({given, plain, given}, schedule)) {
        EXPECT_EQ(answer.tokens, expected.tokens) << name;
        EXPECT_EQ(answer.logprobs, expected.logprobs) << name;
      }
    }
  }
}

// The same folder, whose configuration has other keys before its own.
files::GgufFile open_with_keys(const std::string& name, const std::string& keys) {
  const braid::test::Folder folder;
  std::ifstream in(folder_path(name) + "/config.json");
  std::string config{std::istreambuf_iterator<char>(in), {}};
  config.insert(config.find('{') + 1, keys + ",");
  std::ofstream(folder / "config.json") << config;
  std::filesystem::copy_file(folder_path(name) + "/model.safetensors", folder / "model.safetensors");
  return files::GgufFile::from_contents(read_folder(files::HfFolder::open(folder.path()).value()).value());
}

TEST(FolderModels, DoNotCareForKeysThatTheirCodeDoesNotKnow) {
  const std::string heads = R"("num_key_value_heads": 3)";
  const std::string width = R"("intermediate_size": 20)";
  const std::vector<TokenId> ids = {5, 17, 99, 3, 64, 30, 12, 8};
  for (const auto& [name, keys] : {std::pair("gpt2", heads + "," + width),
                                   {"gpt-neox", heads},
                                   {"gptj", heads + "," + width},
                                   {"bloom", heads + "," + width},
                                   {"mpt", heads + "," + width},
                                   {"falcon", heads + "," + width},
                                   {"falcon-mq", heads + "," + width}}) {
    const kernels::KernelTable& table = kernels::best_kernel_table();
    const files::GgufFile file = open_with_keys(name, keys);
    ASSERT_TRUE(describe_model(file)) << name << ": " << describe_model(file).error().message;
    EXPECT_EQ(ForwardHarness(file, table).logits(ids), ForwardHarness(open_folder_model(name), table).logits(ids)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FolderReferences, testing::ValuesIn(folder_models()), folder_test_name);

}  // namespace
}  // namespace braid::model::test
