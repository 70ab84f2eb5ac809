#include "model/weights.h"

#include "kernels/encode.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/language_model.h"
#include "model/tiny_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<std::unique_ptr<LanguageModel>> load(const TinyModel& tiny, std::optional<kernels::KvType> kv = {}) {
  return LanguageModel::load(tiny.file(), kernels::best_kernel_table(), {.kv_type = kv, .max_batch = 2, .end_tokens = {}, .progress = {}});
}

Error error_of(const TinyModel& tiny) {
  const auto model = load(tiny);
  return model ? Error{ErrorCode::kInternal, "loaded", {}} : model.error();
}

TEST(Weights, LoadFromASoundFile) {
  const auto model = load(TinyModel());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->parameters(), 64 * 40 + 3 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96);
  EXPECT_GE((*model)->weight_bytes(), 4 * (64 * 40 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96));
}

TEST(Weights, EstimateIsWhatLoadingTakes) {
  const TinyModel tiny;
  const LoadOptions options{.max_batch = 2, .end_tokens = {}, .progress = {}};
  const MemoryEstimate estimate = estimate_memory(tiny.file(), kernels::best_kernel_table(), options).value();
  const auto model = load(tiny).value();
  EXPECT_EQ(estimate.weights, model->weight_bytes());
  EXPECT_EQ(estimate.workspace, model->workspace_bytes());
  EXPECT_EQ(estimate.kv_block, model->kv_layout().block_bytes());
  EXPECT_EQ(estimate.kv_block, 1U * 2 * 2 * 16 * 16 * 2);
}

// Rows of a matrix that load_weights packed as `type`, and the file's rows encoded as it.
TEST(Weights, FloatMatricesArePackedAsTheTypeAskedFor) {
  using kernels::WeightType;
  const TinyModel tiny;
  const files::GgufFile file = tiny.file();
  const ModelShape model = describe_model(file).value();
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
    const Weights weights = load_weights(file, model, 64, table, team, {}, {.float_type = type}).value();
    EXPECT_EQ(check_weights(file, model, 64, table, {.float_type = type}).value().packed_bytes, weights.packed_bytes);
    const kernels::PackedMatrix& down = weights.layers.front().feed_forward.down.matrix;
    ASSERT_EQ(down.type, type);
    const auto* stored = reinterpret_cast<const float*>(file.tensor("blk.0.ffn_down.weight")->bytes.data());
    std::vector<std::byte> encoded(kernels::stored_row_bytes(*kernels::weight_format(type), 96));
    std::vector<float> expected(96), found(96);
    for (const std::int64_t row : {0, 17, 63}) {
      kernels::encode_row(type, stored + row * 96, 96, encoded.data());
      kernels::dequantize_row(type, encoded.data(), 96, expected.data());
      table.unpack_row(down, row, found.data());
      EXPECT_EQ(found, expected) << kernels::weight_format(type)->name;
    }
  }
}

// Gate and up have 64 inputs; down has 96, which blocks of 64 do not divide.
TEST(Weights, FeedForwardMatricesArePackedRotatedWhereThatIsWanted) {
  using kernels::WeightType;
  const TinyModel tiny;
  const files::GgufFile file = tiny.file();
  const ModelShape model = describe_model(file).value();
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const auto load = [&](std::optional<WeightType> type, bool rotated) {
    return load_weights(file, model, 64, table, team, {}, {.float_type = type, .rotated = rotated}).value();
  };
  EXPECT_EQ(load(WeightType::kQ8_0, false).layers.front().feed_forward.gate.matrix.type, WeightType::kQ8_0);
  EXPECT_EQ(load({}, true).layers.front().feed_forward.gate.matrix.type, WeightType::kF32);
  const Weights weights = load(WeightType::kQ8_0, true);
  const LayerWeights& layer = weights.layers.front();
  EXPECT_EQ(layer.feed_forward.gate.matrix.type, WeightType::kRotated8);
  EXPECT_EQ(layer.feed_forward.up.matrix.type, WeightType::kRotated8);
  EXPECT_EQ(layer.feed_forward.down.matrix.type, WeightType::kQ8_0);
  EXPECT_EQ(layer.attention.query.matrix.type, WeightType::kQ8_0);
  EXPECT_EQ(weights.embedding.type, WeightType::kQ8_0);
  const auto* stored = reinterpret_cast<const float*>(file.tensor("blk.0.ffn_up.weight")->bytes.data());
  std::vector<std::byte> encoded(kernels::stored_row_bytes(*kernels::weight_format(WeightType::kRotated8), 64));
  std::vector<float> expected(64), found(64);
  for (const std::int64_t row : {0, 17, 95}) {
    kernels::encode_row(WeightType::kRotated8, stored + row * 64, 64, encoded.data());
    kernels::dequantize_row(WeightType::kRotated8, encoded.data(), 64, expected.data());
    table.unpack_row(layer.feed_forward.up.matrix, row, found.data());
    EXPECT_EQ(found, expected);
  }
}

TEST(Weights, AllTypesWithAScaleFor32ArePackedRotatedWhereThatIsWanted) {
  using kernels::WeightType;
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  std::vector<float> values(96 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.01F * static_cast<float>(i * i % 97) - 0.4F;
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,
                                WeightType::kIQ4_NL, WeightType::kMXFP4}) {
    SCOPED_TRACE(kernels::weight_format(type)->name);
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), 64);
    TinyModel tiny;
    TinyModel::Tensor& up = tiny.tensors["blk.0.ffn_up.weight"];
    up.type = static_cast<std::uint32_t>(type);
    up.bytes.resize(96 * row_bytes);
    for (std::size_t row = 0; row < 96; ++row) kernels::encode_row(type, values.data() + row * 64, 64, up.bytes.data() + row * row_bytes);
    const files::GgufFile file = tiny.file();
    const ModelShape model = describe_model(file).value();
    const auto packed_up = [&](const Weights& weights) { return weights.layers.front().feed_forward.up.matrix; };
    EXPECT_EQ(packed_up(load_weights(file, model, 64, table, team, {}).value()).type, type);
    const Weights weights = load_weights(file, model, 64, table, team, {}, {.float_type = {}, .rotated = true}).value();
    ASSERT_EQ(packed_up(weights).type, WeightType::kRotated8);
    EXPECT_EQ(check_weights(file, model, 64, table, {.float_type = {}, .rotated = true}).value().packed_bytes, weights.packed_bytes);
    std::vector<float> stored(64), expected(64), found(64);
    std::vector<std::byte> encoded(kernels::stored_row_bytes(*kernels::weight_format(WeightType::kRotated8), 64));
    for (const std::int64_t row : {0, 17, 95}) {
      kernels::dequantize_row(type, up.bytes.data() + static_cast<std::size_t>(row) * row_bytes, 64, stored.data());
      kernels::encode_row(WeightType::kRotated8, stored.data(), 64, encoded.data());
      kernels::dequantize_row(WeightType::kRotated8, encoded.data(), 64, expected.data());
      table.unpack_row(packed_up(weights), row, found.data());
      EXPECT_EQ(found, expected);
    }
  }
}

// They are floats in the file: 8 bits would be more than was asked for.
TEST(Weights, QuantisedToFewerBitsThanRotatedOnesStaySo) {
  const TinyModel tiny;
  const files::GgufFile file = tiny.file();
  const ModelShape model = describe_model(file).value();
  kernels::ThreadTeam team(1);
  const Weights weights =
      load_weights(file, model, 64, kernels::best_kernel_table(), team, {}, {.float_type = kernels::WeightType::kQ4_0, .rotated = true})
          .value();
  EXPECT_EQ(weights.layers.front().feed_forward.up.matrix.type, kernels::WeightType::kQ4_0);
}

// GPT-2's queries, keys and values lie in one tensor, and so do their biases.
TEST(Weights, SeveralInOneTensorAreTakenApart) {
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/test/model/reference/gpt2.gguf").value();
  const ModelShape model = describe_model(file).value();
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const auto* matrix = reinterpret_cast<const float*>(file.tensor("blk.1.attn_qkv.weight")->bytes.data());
  const auto* bias = reinterpret_cast<const float*>(file.tensor("blk.1.attn_qkv.bias")->bytes.data());
  for (const auto type : {kernels::WeightType::kF32, kernels::WeightType::kF16}) {
    const Weights weights = load_weights(file, model, 64, table, team, {}, {.float_type = type}).value();
    const AttentionWeights& attention = weights.layers[1].attention;
    std::int64_t first = 0;
    for (const LinearWeights* part : {&attention.query, &attention.key, &attention.value}) {
      ASSERT_EQ(part->matrix.outputs, 64);
      std::vector<float> found(64);
      for (const std::int64_t row : {0, 17, 63}) {
        table.unpack_row(part->matrix, row, found.data());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], matrix[(first + row) * 64 + static_cast<std::int64_t>(i)], 1e-3);
        EXPECT_EQ(part->bias[static_cast<std::size_t>(row)], bias[first + row]);
      }
      first += 64;
    }
  }
}

TEST(Weights, NameATypeOfOurOwn) {
  TinyModel tiny;
  tiny.tensors["blk.0.ffn_up.weight"].type = static_cast<std::uint32_t>(kernels::WeightType::kRotated8);
  const Error error = error_of(tiny);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("blk.0.ffn_up.weight"), HasSubstr("type number 65536")));
}

TEST(Weights, LoadOptionsSayHowTheyArePacked) {
  TinyModel tiny;
  tiny.keys["llama.feed_forward_length"] = 128U;
  tiny.tensors["blk.0.ffn_gate.weight"].shape = tiny.tensors["blk.0.ffn_up.weight"].shape = {64, 128};
  tiny.tensors["blk.0.ffn_down.weight"].shape = {128, 64};
  const auto bytes = [&](bool rotated) {
    const LoadOptions options{
        .packing = {.float_type = kernels::WeightType::kQ8_0, .rotated = rotated}, .max_batch = 2, .end_tokens = {}, .progress = {}};
    const auto model = LanguageModel::load(tiny.file(), kernels::best_kernel_table(), options).value();
    EXPECT_EQ(estimate_memory(tiny.file(), kernels::best_kernel_table(), options).value().weights, model->weight_bytes());
    return model->weight_bytes();
  };
  // The down matrix has four panels of four blocks: 32 bytes of scales for each block, or 64 for the group.
  EXPECT_EQ(bytes(true) + 4 * 64, bytes(false));
}

TEST(Weights, ReportProgressUpToTheWhole) {
  std::uint64_t last = 0, total = 0;
  LoadOptions options{.threads = 2, .max_batch = 2, .end_tokens = {}, .progress = {}};
  options.progress = [&](std::string_view what, std::uint64_t done, std::uint64_t all) {
    if (what != "weights") return;
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  ASSERT_TRUE(LanguageModel::load(TinyModel().file(), kernels::best_kernel_table(), options));
  EXPECT_GT(total, 0U);
  EXPECT_EQ(last, total);
}

TEST(Weights, NameATensorThatIsMissing) {
  for (const auto& [name, tensor] : TinyModel().tensors) {
    TinyModel tiny;
    tiny.tensors.erase(name);
    const Error error = error_of(tiny);
    EXPECT_EQ(error.code, ErrorCode::kBadFile);
    EXPECT_THAT(error.message, AllOf(HasSubstr(name), HasSubstr("missing")));
  }
}

TEST(Weights, NameATensorOfTheWrongShape) {
  for (const auto& [name, tensor] : TinyModel().tensors) {
    TinyModel tiny;
    tiny.tensors[name].shape[0] += 32;
    const Error error = error_of(tiny);
    EXPECT_EQ(error.code, ErrorCode::kBadFile) << name;
    EXPECT_THAT(error.message, AllOf(HasSubstr(name), HasSubstr("found shape ["), HasSubstr("expected [")));
  }
}

TEST(Weights, NameATypeThatCannotBeComputed) {
  TinyModel tiny;
  tiny.tensors["blk.0.ffn_up.weight"].type = 24;  // I8
  const Error error = error_of(tiny);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("blk.0.ffn_up.weight"), HasSubstr("type I8")));
}

TEST(Weights, RefuseATensorThatTheArchitectureDoesNotHave) {
  TinyModel tiny;
  tiny.tensors["blk.0.attn_q_norm.weight"] = {{16}};
  const Error error = error_of(tiny);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("blk.0.attn_q_norm.weight"), HasSubstr("llama")));
}

TEST(Weights, Qwen2NeedsItsBiases) {
  TinyModel tiny("qwen2");
  EXPECT_THAT(error_of(tiny).message, AllOf(HasSubstr("blk.0.attn_q.bias"), HasSubstr("missing")));
  tiny.tensors["blk.0.attn_q.bias"] = {{64}};
  tiny.tensors["blk.0.attn_k.bias"] = {{32}};
  tiny.tensors["blk.0.attn_v.bias"] = {{32}};
  EXPECT_TRUE(load(tiny));
}

TEST(Weights, ZeroRopeDivisorsAreRefused) {
  TinyModel tiny;
  tiny.tensors["rope_freqs.weight"] = {{8}};  // zeros
  EXPECT_THAT(error_of(tiny).message, HasSubstr("rope divisors"));
}

TEST(Weights, DivisorsThatTheScalingDoesNotUseAreRefused) {
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    TinyModel tiny;
    tiny.tensors[name] = {{8}};
    EXPECT_THAT(error_of(tiny).message, AllOf(HasSubstr(name), HasSubstr("not part of the llama architecture")));
  }
}

TEST(Weights, ALayerCountBeyondTheFileIsRefused) {
  TinyModel tiny;
  tiny.keys["llama.block_count"] = 4000U;
  EXPECT_THAT(error_of(tiny).message, AllOf(HasSubstr("llama.block_count is 4000"), HasSubstr("tensors only")));
}

TEST(LanguageModel, RefusesAContextBeyondTheModels) {
  const auto model = LanguageModel::load(TinyModel().file(), kernels::best_kernel_table(),
                                         {.context_length = 65, .max_batch = 2, .end_tokens = {}, .progress = {}});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, AllOf(HasSubstr("65"), HasSubstr("64")));
}

// A prompt of three tokens and the one after it.
step::StepResult first_step(const TinyModel& tiny, float temperature, std::optional<kernels::KvType> kv = {}) {
  auto model = load(tiny, kv).value();
  model->allocate_kv(1).value();
  step::StepPlan plan;
  plan.starts.push_back({.slot = 0, .sampling = {.temperature = temperature}, .stop = {}});
  plan.tokens = {1, 2, 3};
  plan.blocks = {0};
  plan.rows.push_back({.slot = 0, .count = 3, .block_count = 1, .output = step::RowOutput::kSample});
  step::StepResult result;
  model->execute(plan, result);
  return result;
}

TEST(LanguageModel, MixedWeightTypesShareOneLayer) {
  TinyModel tiny;
  tiny.zeros = true;
  tiny.tensors["blk.0.attn_k.weight"].type = 3;     // Q4_1 beside F32
  tiny.tensors["blk.0.attn_v.weight"].type = 8;     // Q8_0
  tiny.tensors["blk.0.ffn_gate.weight"].type = 2;   // Q4_0
  tiny.tensors["blk.0.ffn_up.weight"].type = 1;     // F16
  tiny.tensors["blk.0.ffn_down.weight"].type = 20;  // IQ4_NL
  const step::StepResult result = first_step(tiny, 0.0F);
  EXPECT_FALSE(result.failure);
  EXPECT_EQ(result.rows.at(0).token, 0) << "zero weights tie all tokens";
}

TEST(LanguageModel, ARowThatIsNoNumberEndsInAnErrorWhateverTheTypeOfItsLogitsWeights) {
  for (const std::uint32_t type : {0U, 8U}) {  // F32, Q8_0
    TinyModel tiny;
    tiny.spoilt = "token_embd.weight";
    tiny.tensors["output.weight"] = {{64, 40}, type};
    const step::StepResult result = first_step(tiny, 1.0F);
    EXPECT_FALSE(result.failure);
    EXPECT_FALSE(result.rows.at(0).sampled);
    EXPECT_TRUE(result.rows.at(0).finished);
    EXPECT_EQ(result.rows.at(0).reason, FinishReason::kError);
  }
}

TEST(LanguageModel, WhatIsNoNumberWithinALayerEndsTheRowInAnErrorToo) {
  using kernels::KvType;
  for (const char* spoilt : {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"}) {
    for (const KvType kv : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
      TinyModel tiny;
      tiny.spoilt = std::string("blk.0.") + spoilt + ".weight";
      tiny.tensors["blk.0.attn_output.weight"].type = 8;  // Q8_0
      tiny.tensors["blk.0.ffn_down.weight"].type = 8;
      const step::StepResult result = first_step(tiny, 1.0F, kv);
      EXPECT_FALSE(result.rows.at(0).sampled) << spoilt << " " << static_cast<int>(kv);
      EXPECT_EQ(result.rows.at(0).reason, FinishReason::kError) << spoilt << " " << static_cast<int>(kv);
    }
  }
}

TEST(LanguageModel, ARowWhoseNormOverflowsEndsInAnErrorToo) {
  TinyModel tiny;
  tiny.spoilt = "token_embd.weight";
  tiny.spoilt_by = 1e25F;
  tiny.tensors["output.weight"] = {{64, 40}};
  const step::StepResult result = first_step(tiny, 1.0F);
  EXPECT_FALSE(result.rows.at(0).sampled);
  EXPECT_EQ(result.rows.at(0).reason, FinishReason::kError);
}

TEST(LanguageModel, ABranchWhosePostNormOverflowsEndsItsRowInAnErrorToo) {
  TinyModel tiny("gemma2");
  tiny.tensors["blk.0.post_attention_norm.weight"] = {{64}};
  tiny.tensors["blk.0.post_ffw_norm.weight"] = {{64}};
  EXPECT_TRUE(first_step(tiny, 1.0F).rows.at(0).sampled);
  tiny.spoilt = "blk.0.ffn_up.weight";
  tiny.spoilt_by = 1e25F;
  const step::StepResult result = first_step(tiny, 1.0F);
  EXPECT_FALSE(result.rows.at(0).sampled);
  EXPECT_EQ(result.rows.at(0).reason, FinishReason::kError);
}

}  // namespace
}  // namespace braid::model::test
