// Folders that are quantised already, packed by reference/make_prequantized.py as the formats are documented.
#include "model/prequantized/prequantized.h"

#include "model/convert.h"
#include "model/families/families.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/tensor_reader.h"
#include "support/folder.h"

#include <array>
#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <simdjson.h>

namespace braid::model::test {
namespace {

using kernels::WeightType;
using testing::HasSubstr;

std::string prequantized_path(const std::string& name) { return BRAID_SOURCE_DIR "/test/model/reference/prequantized/" + name; }

Prequantized matrices_of(const files::HfFolder& folder) {
  FolderConfig config(folder.config(), folder.path() + "/config.json");
  Prequantized read = read_prequantized(folder, config);
  EXPECT_EQ(config.error ? config.error->message : "", "");
  return read;
}

files::GgufFile open_prequantized(const std::string& name) {
  return files::GgufFile::from_contents(read_folder(files::HfFolder::open(prequantized_path(name)).value()).value());
}

// As zlib has it (RFC 1952).
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

struct Format {
  const char* folder;
  WeightType type;     // that its matrices are held as
  bool exact;          // whether that type has their values
  WeightType other{};  // of some matrices, where a folder mixes
};

class PrequantizedFolders : public testing::TestWithParam<Format> {};

TEST_P(PrequantizedFolders, HoldWhatTheirCodesMean) {
  const files::HfFolder folder = files::HfFolder::open(prequantized_path(GetParam().folder)).value();
  const Prequantized read = matrices_of(folder);
  simdjson::dom::parser parser;
  const simdjson::dom::object expected = parser.load(folder.path() + "/expected.json");
  ASSERT_EQ(read.matrices.size(), expected.size());
  for (const auto& [name, what] : expected) {
    const CodedMatrix& matrix = *read.matrices.at(std::string(name));
    std::vector<float> values(static_cast<std::size_t>(matrix.columns()));
    std::uint32_t crc = 0;
    for (std::int64_t row = 0; row < matrix.rows(); ++row) {
      matrix.read(row, values.data());
      crc = crc32(std::as_bytes(std::span(values)), crc);
      std::size_t i = 0;
      for (const double first : simdjson::dom::array(what["first"])) {
        if (row == 0) {
          EXPECT_EQ(values[i++], static_cast<float>(first)) << name;
        }
      }
    }
    EXPECT_EQ(crc, std::uint64_t(what["crc32"])) << name;
  }
}

TEST_P(PrequantizedFolders, AreHeldByATypeOfOurs) {
  const Format& format = GetParam();
  const files::HfFolder folder = files::HfFolder::open(prequantized_path(format.folder)).value();
  const Prequantized read = matrices_of(folder);
  EXPECT_EQ(read.notes.empty(), format.exact);
  for (const auto& [name, matrix] : read.matrices) {
    EXPECT_TRUE(matrix->type() == format.type || matrix->type() == format.other) << name;
    std::vector<float> meant(static_cast<std::size_t>(matrix->columns()));
    std::vector<float> held(meant.size());
    std::vector<std::byte> stored(kernels::stored_row_bytes(*kernels::weight_format(matrix->type()), matrix->columns()));
    for (std::int64_t row = 0; row < matrix->rows(); ++row) {
      matrix->read(row, meant.data());
      matrix->encode(row, stored.data());
      kernels::dequantize_row(matrix->type(), stored.data(), matrix->columns(), held.data());
      if (format.exact) {
        ASSERT_EQ(held, meant) << name << ", row " << row;
      }
    }
    EXPECT_LT(matrix->error(), format.exact ? 1e-12 : 0.01) << name;
  }
}

std::vector<float> logits_of(const files::GgufFile& file, const kernels::KernelTable& table, const Packing& packing) {
  const std::vector<TokenId> ids = {1, 5, 9, 2, 14, 3, 3, 7};
  return ForwardHarness(file, table, packing).logits(ids);
}

// In their own type on every tier, as floats, and written to a file and read again.
TEST_P(PrequantizedFolders, ComputeTheSameAsTheFilesMadeOfThem) {
  const files::GgufFile file = open_prequantized(GetParam().folder);
  const braid::test::Folder folder;
  kernels::ThreadTeam team(1);
  write_model(file, folder / "own.gguf", {}, team, {}).value();
  write_model(file, folder / "f32.gguf", {.type = WeightType::kF32}, team, {}).value();
  const files::GgufFile own = files::GgufFile::open(folder / "own.gguf").value();
  const files::GgufFile floats = files::GgufFile::open(folder / "f32.gguf").value();
  for (const kernels::KernelTable* table : available_tables()) {
    EXPECT_EQ(logits_of(file, *table, {}), logits_of(own, *table, {})) << table->name;
    EXPECT_EQ(logits_of(file, *table, {.float_type = WeightType::kF32}), logits_of(floats, *table, {})) << table->name;
  }
  if (!GetParam().exact) return;
  const Packing fast{.float_type = {}, .rotated = true};
  EXPECT_EQ(logits_of(file, kernels::best_kernel_table(), fast), logits_of(own, kernels::best_kernel_table(), fast));
  if (rotates(GetParam().type) && GetParam().folder != std::string_view("kimi-k2.5")) {  // all experts, which are never rotated
    EXPECT_NE(logits_of(file, kernels::best_kernel_table(), fast), logits_of(file, kernels::best_kernel_table(), {})) << "it rotates";
  }
  for (const kernels::KernelTable* table : available_tables()) {
    if (GetParam().type == WeightType::kBF16 && rounds_activations(*table)) continue;
    const std::vector<float> meant = logits_of(floats, *table, {});
    const std::vector<float> unpacked = logits_of(own, *table, {});
    for (std::size_t i = 0; i < meant.size(); ++i) EXPECT_NEAR(unpacked[i], meant[i], 0.2F) << table->name;  // activations of 8 bits
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PrequantizedFolders,
                         testing::Values(Format{"mlx3", WeightType::kQ4_1, true}, Format{"mlx4", WeightType::kQ4_1, true},
                                         Format{"mlx5", WeightType::kQ5_1, true},
                                         Format{"mlx8-mixed", WeightType::kQ8_0, false, WeightType::kQ4_1},
                                         Format{"mlx-mxfp4", WeightType::kMXFP4, true}, Format{"mlx-nvfp4", WeightType::kQ8_0, false},
                                         Format{"mlx-mxfp8", WeightType::kBF16, true}, Format{"gptq3", WeightType::kQ4_0, true},
                                         Format{"gptq4", WeightType::kQ4_0, true}, Format{"gptq4-zeros", WeightType::kQ5_0, true},
                                         Format{"gptq4-act-order", WeightType::kQ8_0, false},
                                         Format{"gptq4-whole", WeightType::kQ4_0, true}, Format{"gptq8", WeightType::kQ8_0, true},
                                         Format{"awq", WeightType::kQ5_0, true}, Format{"int4", WeightType::kQ4_0, true},
                                         Format{"int4-zeros", WeightType::kQ5_0, true}, Format{"int8", WeightType::kQ8_0, true},
                                         Format{"float8", WeightType::kBF16, false}, Format{"nvfp4", WeightType::kQ8_0, false},
                                         Format{"fp8-blocks", WeightType::kBF16, false}, Format{"fp8-whole", WeightType::kBF16, false},
                                         Format{"kimi-k2.5", WeightType::kQ4_0, true}),
                         [](const auto& suite) {
  std::string name = suite.param.folder;
  for (const char c : {'-', '.'}) std::ranges::replace(name, c, '_');
  return name;
});

// The folder `name` with something of it changed.
std::string error_with(const std::string& name, const std::function<void(std::string& config, files::SafeTensors& tensors)>& change) {
  const files::HfFolder from = files::HfFolder::open(prequantized_path(name)).value();
  std::string config = from.config();
  files::SafeTensors tensors{{}, from.tensors()};
  change(config, tensors);
  const braid::test::Folder folder;
  std::ofstream(folder / "config.json") << config;
  const std::vector<std::byte> bytes = files::write_safetensors(tensors);
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto read = read_folder(files::HfFolder::open(folder.path()).value());
  return read ? "none" : read.error().message;
}

std::string error_without(const std::string& name, const std::string& tensor) {
  return error_with(name, [&](std::string&, files::SafeTensors& tensors) { ASSERT_EQ(tensors.tensors.erase(tensor), 1U); });
}

std::string error_with_config(const std::string& name, const std::string& from, const std::string& to) {
  return error_with(name, [&](std::string& config, files::SafeTensors&) {
    const std::size_t at = config.find(from);
    ASSERT_NE(at, std::string::npos);
    config.replace(at, from.size(), to);
  });
}

TEST(PrequantizedNotes, SayWhereActOrderIsWhy) {
  const auto notes = [](const std::string& name) { return matrices_of(files::HfFolder::open(prequantized_path(name)).value()).notes; };
  EXPECT_THAT(notes("gptq4-act-order"), testing::ElementsAre(HasSubstr("(7 for act-order, in which no type of blocks")));
  EXPECT_THAT(notes("mlx-nvfp4"), testing::ElementsAre(testing::Not(HasSubstr("act-order"))));
}

TEST(PrequantizedErrors, NameThePartThatIsMissing) {
  const std::string stem = "model.layers.0.mlp.up_proj";
  for (const auto& [folder, part] : {std::pair<std::string, std::string>{"mlx4", "weight"},
                                     {"mlx4", "biases"},
                                     {"gptq4", "qzeros"},
                                     {"gptq4", "scales"},
                                     {"awq", "scales"},
                                     {"int4", "weight_shape"},
                                     {"int8", "weight"},
                                     {"fp8-whole", "weight_scale"}})
    EXPECT_THAT(error_without(folder, stem + "." + part), HasSubstr("the quantised matrix " + stem + ": '" + part + "' is missing"));
}

TEST(PrequantizedErrors, NameWhatIsNotRead) {
  EXPECT_THAT(error_with_config("gptq4", R"("quant_method": "gptq")", R"("quant_method": "bitsandbytes")"),
              HasSubstr("quant_method is \"bitsandbytes\", which this build does not read; it reads MLX, GPTQ"));
  EXPECT_THAT(error_with_config("gptq4", R"("checkpoint_format": "gptq")", R"("checkpoint_format": "marlin")"), HasSubstr("\"marlin\""));
  EXPECT_THAT(error_with_config("awq", R"("version": "gemm")", R"("version": "gemv")"), HasSubstr("\"gemv\", expected 4 bits and gemm"));
  EXPECT_THAT(error_with_config("mlx-mxfp4", R"("mode": "mxfp4")", R"("mode": "mxfp2")"), HasSubstr("the mode \"mxfp2\""));
  EXPECT_THAT(error_with_config("int4", R"("format": "pack-quantized")", R"("sparsity_config": {"format": "sparse-24-bitmask"})"),
              HasSubstr("its weights are sparse"));
}

TEST(PrequantizedErrors, TellWhatDoesNotFit) {
  EXPECT_THAT(error_with_config("mlx4", R"("group_size": 64)", R"("group_size": 32)"), HasSubstr("there are 1 scales for 64 inputs"));
  EXPECT_THAT(error_with_config("mlx4", R"("bits": 4)", R"("bits": 9)"), HasSubstr("codes of 9 bits"));
  EXPECT_THAT(error_with_config("gptq4", R"("bits": 4)", R"("bits": 8)"), HasSubstr("found a part of shape"));
  EXPECT_THAT(error_with_config("gptq4", R"("bits": 4)", R"("bits": "four")"), HasSubstr("bits is \"four\", expected a whole number"));
  EXPECT_THAT(error_with_config("fp8-blocks", "48,\n   48", "16,\n   16"), HasSubstr("found a part of shape [2, 2], expected [4, 4]"));
  EXPECT_THAT(error_with_config("fp8-blocks", "48,\n   48", "0,\n   48"), HasSubstr("weight_block_size is not two sizes"));
}

TEST(PrequantizedErrors, NameAGroupThatIsNotThere) {
  const auto error = error_with("gptq4-act-order", [](std::string&, files::SafeTensors& tensors) {
    static const std::array<std::int32_t, 64> indices = [] {
      std::array<std::int32_t, 64> all{};
      all[3] = 2;
      return all;
    }();
    tensors.tensors.at("model.layers.0.mlp.up_proj.g_idx").bytes = std::as_bytes(std::span(indices));
  });
  EXPECT_THAT(error, HasSubstr("g_idx names the group 2 of 2"));
}

}  // namespace
}  // namespace braid::model::test
