// Folders written as GGUF files compute what the folders do.
#include "model/convert.h"

#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "support/folder.h"

namespace braid::model::test {
namespace {

std::vector<float> logits_of(const files::GgufFile& file, const Packing& packing) {
  std::vector<TokenId> ids(40);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 7 % 120);
  return ForwardHarness(file, kernels::best_kernel_table(), packing).logits(ids);
}

void convert(const files::GgufFile& file, const std::string& path, std::optional<kernels::WeightType> type) {
  kernels::ThreadTeam team(1);
  write_model(file, path, {.type = type}, team, {}).value();
}

class Converted : public testing::TestWithParam<std::string> {};

// Bit for bit: rows in another order, added ones, transposed and joined tensors included.
TEST_P(Converted, FilesGiveTheFoldersLogits) {
  const braid::test::Folder folder;
  const files::GgufFile from = open_folder_model(GetParam());
  const bool has_codes = std::ranges::any_of(from.tensors(), [](const files::GgufTensor& tensor) {
    return tensor.coded && tensor.type == static_cast<std::uint32_t>(kernels::WeightType::kMXFP4);
  });
  for (const auto type : {std::optional<kernels::WeightType>(), std::optional(kernels::WeightType::kF32)}) {
    if (has_codes && !type) continue;  // a file's codes meet activations in 8 bits
    convert(from, folder / "model.gguf", type);
    const files::GgufFile to = files::GgufFile::open(folder / "model.gguf").value();
    const Packing exact{.float_type = kernels::WeightType::kF32};
    EXPECT_EQ(logits_of(to, exact), logits_of(from, exact));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Converted, testing::ValuesIn(folder_models()), folder_test_name);

// What this build finds out from tensors, and llama.cpp refuses files without.
TEST(Convert, WritesTheKeysThatLlamaCppAsksFor) {
  for (const auto& [folder, key] : {std::pair{"deepseek-v2", "deepseek2.expert_shared_count"},
                                    {"deepseek-v3", "deepseek2.leading_dense_block_count"},
                                    {"dots1", "dots1.expert_shared_count"},
                                    {"ernie4.5-moe", "ernie4_5-moe.interleave_moe_layer_step"},
                                    {"ernie4.5-moe", "ernie4_5-moe.leading_dense_block_count"},
                                    {"ernie4.5-moe", "ernie4_5-moe.expert_shared_feed_forward_length"},
                                    {"glm4-moe", "glm4moe.expert_shared_count"},
                                    {"granite-moe-shared", "granitemoe.expert_shared_feed_forward_length"},
                                    {"hunyuan-moe", "hunyuan-moe.expert_feed_forward_length"},
                                    {"hunyuan-moe", "hunyuan-moe.expert_shared_feed_forward_length"},
                                    {"nemotron-h-moe", "nemotron_h.expert_shared_feed_forward_length"},
                                    {"qwen2-moe", "qwen2moe.expert_shared_feed_forward_length"},
                                    {"minimax-m2", "minimax-m2.expert_feed_forward_length"},
                                    {"apertus", "xielu.alpha_n"}}) {
    EXPECT_NE(open_folder_model(folder).find(key), nullptr) << folder << ": " << key;
  }
  EXPECT_EQ(open_folder_model("phi3-longrope").find("phi3.rope.scaling.factor"), nullptr);          // would divide angles again
  EXPECT_EQ(open_folder_model("deepseek-v3").find("deepseek2.rope.scaling.attn_factor"), nullptr);  // would multiply them again
}

// Which llama.cpp knows of some families by this key alone.
TEST(Convert, SaysThatRoutersTakeSigmoids) {
  for (const auto& [folder, architecture] : {std::pair{"deepseek-v3", "deepseek2"},
                                             {"dots1", "dots1"},
                                             {"glm4-moe", "glm4moe"},
                                             {"lfm2-moe", "lfm2moe"},
                                             {"minimax-m2", "minimax-m2"},
                                             {"nemotron-h-moe", "nemotron_h"}})
    EXPECT_EQ(open_folder_model(folder).unsigned_or(std::string(architecture) + ".expert_gating_func", 0).value(), 2U) << folder;
}

TEST(Convert, ShapesRecurrentTablesAsLlamaCppDoes) {
  for (const char* name : {"mamba2", "nemotron-h", "bamba", "falcon-h1", "granite4"}) {
    const braid::test::Folder folder;
    convert(open_folder_model(name), folder / "model.gguf", kernels::WeightType::kQ8_0);
    const files::GgufFile file = files::GgufFile::open(folder / "model.gguf").value();
    for (const char* part : {"blk.0.ssm_a", "blk.0.ssm_d"}) {
      const files::GgufTensor* table = file.tensor(part);
      ASSERT_NE(table, nullptr) << name << ": " << part;
      EXPECT_EQ(table->shape.size(), 2U) << name << ": " << part;
      EXPECT_EQ(table->shape.front(), 1) << name << ": " << part;
      EXPECT_EQ(table->type, static_cast<std::uint32_t>(kernels::WeightType::kF32)) << name << ": " << part;
    }
  }
  EXPECT_NE(open_folder_model("falcon-h1").tensor("blk.0.ffn_norm"), nullptr);
}

TEST(Convert, RoundsMatricesAndLeavesVectorsExact) {
  const braid::test::Folder folder;
  convert(open_folder_model("qwen3"), folder / "model.gguf", kernels::WeightType::kQ8_0);
  const files::GgufFile file = files::GgufFile::open(folder / "model.gguf").value();
  EXPECT_EQ(file.tensor("blk.0.attn_q.weight")->type, static_cast<std::uint32_t>(kernels::WeightType::kQ8_0));
  EXPECT_EQ(file.tensor("blk.0.attn_norm.weight")->type, static_cast<std::uint32_t>(kernels::WeightType::kF32));
  EXPECT_EQ(file.tensor("blk.0.ffn_down.weight")->type, static_cast<std::uint32_t>(kernels::WeightType::kF16));  // 48 inputs
  EXPECT_EQ(file.unsigned_or("general.file_type", 0).value(), 7U);
  // What loading rounds while it packs is the same.
  EXPECT_EQ(logits_of(file, {.float_type = kernels::WeightType::kQ8_0}), logits_of(file, {}));
}

TEST(Convert, TellsWhatCannotBeWritten) {
  kernels::ThreadTeam team(1);
  const auto written = write_model(open_folder_model("qwen3"), "/nowhere/model.gguf", {}, team, {});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/nowhere/model.gguf: cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace braid::model::test
