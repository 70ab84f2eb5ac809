// Files with weights of fewer bits, beside what llama.cpp chooses (reference/make_mixes.py).
#include "kernels/encode.h"
#include "model/convert.h"
#include "model/folder_models.h"
#include "model/row_encoding.h"
#include "support/folder.h"

#include <gmock/gmock.h>
#include <map>
#include <simdjson.h>

namespace braid::model::test {
namespace {

using kernels::WeightType;
using testing::HasSubstr;

// A model of make_mixes.py: matrices of two rows.
struct MixModel {
  const char* architecture;
  int layers;
  std::uint32_t heads, kv_heads;
  bool has_output;
  std::int64_t down_columns;
};
const std::map<std::string, MixModel> kMixModels = {{"llama", {"llama", 16, 8, 8, true, 256}},
                                                    {"llama-shared", {"llama", 12, 8, 2, false, 256}},
                                                    {"llama-odd", {"llama", 8, 8, 2, true, 96}},
                                                    {"falcon", {"falcon", 32, 8, 1, true, 256}}};

files::GgufFile file_of(const MixModel& model) {
  files::GgufContents contents;
  contents.sources.push_back(files::owned_bytes(std::vector<std::byte>(256 * 8), "model"));
  const std::string prefix = model.architecture;
  contents.metadata = {{"general.architecture", prefix},
                       {prefix + ".block_count", static_cast<std::uint64_t>(model.layers)},
                       {prefix + ".attention.head_count", std::uint64_t{model.heads}},
                       {prefix + ".attention.head_count_kv", std::uint64_t{model.kv_heads}}};
  const auto add = [&](const std::string& name, std::int64_t columns) {
    contents.tensors.push_back({name, 0, {columns, 2}, contents.sources.front()->bytes().first(static_cast<std::size_t>(columns) * 8)});
  };
  add("token_embd.weight", 256);
  if (model.has_output) add("output.weight", 256);
  // The order of layers in a file says nothing.
  for (int layer = model.layers - 1; layer >= 0; --layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    const auto parts = prefix == "falcon" ? std::vector<std::string>{"attn_qkv", "attn_output", "ffn_up"}
                                          : std::vector<std::string>{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up"};
    for (const std::string& part : parts) add(block + part + ".weight", 256);
    add(block + "ffn_down.weight", model.down_columns);
  }
  return files::GgufFile::from_contents(std::move(contents));
}

TEST(QuantizationMixes, GiveTensorsTheTypesThatLlamaCppGivesThem) {
  simdjson::dom::parser parser;
  const simdjson::dom::object all = parser.load(BRAID_SOURCE_DIR "/test/model/reference/mixes.json");
  ASSERT_GT(all.size(), 60U);
  for (const auto& [key, types] : all) {
    const std::string what(key);
    const std::string model = what.substr(0, what.find(' '));
    const bool importance = what.ends_with(" importance");
    const std::string name = what.substr(model.size() + 1, what.find(' ', model.size() + 1) - model.size() - 1);
    const QuantizationMix* mix = quantization_mix(name);
    ASSERT_NE(mix, nullptr) << name;
    const files::GgufFile file = file_of(kMixModels.at(model));
    const std::vector<WeightType> chosen = types_of_mix(file, *mix, false, importance);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      std::string_view expected;
      if (types[file.tensors()[i].name].get(expected) != simdjson::SUCCESS) expected = types[""];
      EXPECT_EQ(kernels::weight_format(chosen[i])->name, expected) << what << ": " << file.tensors()[i].name;
    }
  }
}

TEST(QuantizationMixes, AreFoundByNameInAnyCase) {
  EXPECT_EQ(quantization_mix("Q4_K_M"), quantization_mix("q4_k"));
  EXPECT_EQ(quantization_mix("q9"), nullptr);
  EXPECT_EQ(quantization_mix("bf16")->type, WeightType::kBF16);
}

TEST(QuantizationMixes, LeaveNormsVectorsAndRoutersAlone) {
  files::GgufContents contents;
  contents.sources.push_back(files::owned_bytes(std::vector<std::byte>(256 * 8), "model"));
  for (const char* name : {"blk.0.attn_norm.weight", "blk.0.ffn_gate_inp.weight", "position_embd.weight", "blk.0.attn_q.bias"})
    contents.tensors.push_back({name, 0, {256, 2}, contents.sources.front()->bytes()});
  contents.tensors.push_back({"blk.0.attn_q.weight", 0, {256}, contents.sources.front()->bytes().first(1024)});
  const files::GgufFile file = files::GgufFile::from_contents(std::move(contents));
  EXPECT_THAT(types_of_mix(file, *quantization_mix("q4_k_m"), false, false), testing::Each(WeightType::kF32));
}

Result<void> quantize(const files::GgufFile& file, const std::string& path, const QuantizeOptions& options) {
  kernels::ThreadTeam team(2);
  return quantize_model(file, path, options, team, {});
}

TEST(Quantize, WritesEightBitsAsConvertDoes) {
  const braid::test::Folder folder;
  const files::GgufFile from = open_folder_model("mistral");
  quantize(from, folder / "q8.gguf", {.mix = quantization_mix("q8_0")}).value();
  kernels::ThreadTeam team(1);
  write_model(from, folder / "converted.gguf", {.type = WeightType::kQ8_0}, team, {}).value();
  const files::GgufFile to = files::GgufFile::open(folder / "q8.gguf").value();
  const files::GgufFile converted = files::GgufFile::open(folder / "converted.gguf").value();
  EXPECT_EQ(to.unsigned_or("general.file_type", 0).value(), 7U);
  ASSERT_EQ(to.tensors().size(), converted.tensors().size());
  for (std::size_t i = 0; i < to.tensors().size(); ++i) {
    EXPECT_EQ(to.tensors()[i].type, converted.tensors()[i].type) << to.tensors()[i].name;
    EXPECT_TRUE(std::ranges::equal(to.tensors()[i].bytes, converted.tensors()[i].bytes)) << to.tensors()[i].name;
  }
}

TEST(Quantize, DoesNotRoundAgainUnlessAsked) {
  const braid::test::Folder folder;
  quantize(open_folder_model("mistral"), folder / "q8.gguf", {.mix = quantization_mix("q8_0")}).value();
  const files::GgufFile once = files::GgufFile::open(folder / "q8.gguf").value();
  const QuantizationMix* mix = quantization_mix("q4_0");
  const auto refused = quantize(once, folder / "q4.gguf", {.mix = mix});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is of Q8_0 already"));
  quantize(once, folder / "q4.gguf", {.mix = mix, .from_quantized = true}).value();
  const files::GgufFile twice = files::GgufFile::open(folder / "q4.gguf").value();
  EXPECT_EQ(twice.tensor("blk.0.attn_q.weight")->type, static_cast<std::uint32_t>(WeightType::kQ4_0));
  EXPECT_EQ(twice.tensor("output.weight")->type, static_cast<std::uint32_t>(WeightType::kQ8_0));
}

TEST(Quantize, EachMatrixIsWrittenByItsOwnImportance) {
  const braid::test::Folder folder;
  const files::GgufFile from = open_folder_model("mistral");
  const files::GgufTensor& matrix = *from.tensor("blk.0.ffn_up.weight");
  const std::int64_t columns = matrix.shape.front();
  files::ImportanceMatrix importance;
  importance[matrix.name] = std::vector<float>(static_cast<std::size_t>(columns), 0.01F);
  for (std::size_t i = 0; i < importance[matrix.name].size(); i += 8) importance[matrix.name][i] = 1.0F;
  quantize(from, folder / "q4.gguf", {.mix = quantization_mix("q4_0"), .importance = &importance, .pure = true}).value();
  const files::GgufFile to = files::GgufFile::open(folder / "q4.gguf").value();
  const auto rows_by = [&](const std::string& name, const float* weights) {
    const files::GgufTensor& tensor = *from.tensor(name);
    std::vector<float> values(static_cast<std::size_t>(columns));
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(WeightType::kQ4_0), columns);
    std::vector<std::byte> stored(row_bytes * static_cast<std::size_t>(tensor.shape[1]));
    for (std::int64_t row = 0; row < tensor.shape[1]; ++row) {
      read_row(tensor, row, columns, values.data());
      kernels::encode_row_fitted(WeightType::kQ4_0, values.data(), weights, columns,
                                 stored.data() + static_cast<std::size_t>(row) * row_bytes);
    }
    return stored;
  };
  const auto written = [&](const std::string& name) {
    const auto bytes = to.tensor(name)->bytes;
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(written(matrix.name), rows_by(matrix.name, importance[matrix.name].data()));
  EXPECT_NE(written(matrix.name), rows_by(matrix.name, nullptr));
  EXPECT_EQ(written("blk.0.ffn_gate.weight"), rows_by("blk.0.ffn_gate.weight", nullptr));
}

TEST(Quantize, RefusesAnotherModelsImportanceMatrix) {
  const braid::test::Folder folder;
  const files::GgufFile from = open_folder_model("mistral");
  const QuantizationMix* mix = quantization_mix("q4_k_m");
  files::ImportanceMatrix importance = {{"blk.0.ffn_up.weight", {1.0F, 2.0F}}};
  const auto too_short = quantize(from, folder / "out.gguf", {.mix = mix, .importance = &importance});
  ASSERT_FALSE(too_short);
  EXPECT_THAT(too_short.error().message, HasSubstr("has 2 values for blk.0.ffn_up.weight"));
  importance = {{"blk.77.ffn_up.weight", {1.0F}}};
  const auto other = quantize(from, folder / "out.gguf", {.mix = mix, .importance = &importance});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("names no tensor of this model"));
}

}  // namespace
}  // namespace braid::model::test
