#include "model/families/families.h"

#include "model/rope.h"
#include "model/tiny_model.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Families, AreReadWithTheirDefaults) {
  const ModelShape model = describe_model(TinyModel().file()).value();
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.layers.front().attention.head_dim, 16);
  EXPECT_EQ(model.layers.front().attention.kv_heads, 2);
  EXPECT_EQ(model.vocab, 40);
  EXPECT_EQ(model.rotary.front().rotated, 16);
  EXPECT_EQ(model.rotary.front().base, 10000.0);
  EXPECT_EQ(model.rotary.front().scaling, RopeScaling::kNone);
}

TEST(Families, TakeTheHeadSizeFromKeyLength) {
  TinyModel tiny("qwen3");
  tiny.keys["qwen3.attention.key_length"] = 32U;
  const ModelShape model = describe_model(tiny.file()).value();
  EXPECT_EQ(model.layers.front().attention.head_dim, 32);
  EXPECT_EQ(model.layers.front().attention.query_width(), 128);
}

TEST(Families, AcceptOneValueForEveryLayer) {
  TinyModel tiny;
  tiny.keys["llama.attention.head_count_kv"] = std::vector<std::uint32_t>{2, 2, 2};
  EXPECT_EQ(describe_model(tiny.file()).value().layers.front().attention.kv_heads, 2);
}

TEST(Families, ReadEveryKindOfRopeScaling) {
  for (const auto& [name, kind] : {std::pair{"none", RopeScaling::kNone}, std::pair{"linear", RopeScaling::kLinear},
                                   std::pair{"yarn", RopeScaling::kYarn}, std::pair{"longrope", RopeScaling::kLongrope}}) {
    TinyModel tiny;
    tiny.keys["llama.rope.scaling.type"] = name;
    tiny.keys["llama.rope.scaling.factor"] = 4.0F;
    tiny.keys["llama.rope.dimension_count"] = 8U;
    const RopeParameters rope = describe_model(tiny.file()).value().rotary.front();
    EXPECT_EQ(rope.scaling, kind);
    EXPECT_EQ(rope.rotated, 8);
  }
}

TEST(Families, ReadTheOldNameOfALinearFactor) {
  TinyModel tiny;
  tiny.keys["llama.rope.scale_linear"] = 2.0F;
  const RopeParameters rope = describe_model(tiny.file()).value().rotary.front();
  EXPECT_EQ(rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(rope.factor, 2.0);
}

// llama.cpp does the same.
TEST(Families, AFactorWithoutATypeIsLinearAndGoesBeforeItsOldName) {
  TinyModel tiny;
  tiny.keys["llama.rope.scaling.factor"] = 4.0F;
  for (const bool old_too : {false, true}) {
    if (old_too) tiny.keys["llama.rope.scale_linear"] = 2.0F;
    const RopeParameters rope = describe_model(tiny.file()).value().rotary.front();
    EXPECT_EQ(rope.scaling, RopeScaling::kLinear);
    EXPECT_EQ(rope.factor, 4.0);
  }
}

// llama.cpp does the same.
TEST(Families, AnAttentionFactorCountsWithoutScaling) {
  TinyModel tiny;
  tiny.keys["llama.rope.scaling.attn_factor"] = 1.25F;
  for (const bool named : {false, true}) {
    if (named) tiny.keys["llama.rope.scaling.type"] = "none";
    const RopeParameters rope = describe_model(tiny.file()).value().rotary.front();
    EXPECT_EQ(rope.scaling, RopeScaling::kNone);
    EXPECT_EQ(rope.attention_factor, 1.25);
  }
}

// llama.cpp does the same: the converter writes Hugging Face's attention_factor, which is all of the factor (1.139 here), and others'
// attn_factor, which multiplies it, under this one name.
TEST(Families, AYarnModelsOwnAttentionFactorIsNotReadAsAnother) {
  TinyModel tiny;
  tiny.keys["llama.rope.scaling.type"] = "yarn";
  tiny.keys["llama.rope.scaling.factor"] = 4.0F;
  const double magnitude = rope_frequencies(describe_model(tiny.file()).value().rotary.front(), {}).magnitude;
  EXPECT_NEAR(magnitude, 1.0 + 0.1 * std::log(4.0), 1e-12);
  for (const float factor : {1.0F, 1.1386294F, 0.5F}) {
    tiny.keys["llama.rope.scaling.yarn_attn_factor"] = factor;
    EXPECT_EQ(rope_frequencies(describe_model(tiny.file()).value().rotary.front(), {}).magnitude, magnitude) << factor;
  }
}

TEST(Families, ReadTheWindowAndTheScoreCap) {
  TinyModel tiny;
  EXPECT_EQ(describe_model(tiny.file()).value().visibility().window, 0);
  tiny.keys["llama.attention.sliding_window"] = 4096U;
  tiny.keys["llama.attn_logit_softcapping"] = 50.0F;
  ModelShape model = describe_model(tiny.file()).value();
  EXPECT_EQ(model.visibility().window, 4096);
  EXPECT_EQ(model.visibility().sink, 0);
  EXPECT_EQ(model.layers.front().attention.score_cap, 50.0F);
}

// What llama_model_save_to_file, and so llama-finetune, writes for a model of none of these features.
TEST(Families, ReadWhatLlamaCppSaves) {
  TinyModel tiny;
  for (const char* key : {"expert_count", "expert_used_count", "attention.sliding_window"}) tiny.keys[std::string("llama.") + key] = 0U;
  tiny.keys["llama.attention.causal"] = true;
  tiny.keys["llama.rope.scaling.type"] = "linear";
  tiny.keys["llama.rope.scaling.factor"] = 0.0F;
  tiny.keys["llama.rope.scaling.attn_factor"] = 1.0F;
  tiny.keys["llama.rope.scaling.yarn_ext_factor"] = -1.0F;
  tiny.keys["llama.attn_logit_softcapping"] = 50.0F;
  tiny.keys["llama.final_logit_softcapping"] = 30.0F;
  const auto model = describe_model(tiny.file());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->rotary.front().factor, 1.0);
  EXPECT_EQ(model->rotary.front().attention_factor, 1.0);
  EXPECT_EQ(model->rotary.front().yarn_extrapolation, 1.0);
  EXPECT_EQ(model->visibility().window, 0);
  EXPECT_EQ(model->layers.front().attention.score_cap, 0.0F);
}

TEST(Families, SeeWhatTheWindowsAndTheLimitLeave) {
  ModelShape model;
  model.layers.resize(6);
  for (std::size_t i = 0; i < 5; ++i) model.layers[i].attention.window = 512;
  EXPECT_EQ(model.layer_visibility(0).window, 512);
  EXPECT_EQ(model.layer_visibility(5).window, 0);
  EXPECT_EQ(model.visibility().window, 0) << "the last layer sees everything";
  model.kv_limit = 1000;
  EXPECT_EQ(model.layer_visibility(0).window, 512);
  EXPECT_EQ(model.layer_visibility(0).sink, 0);
  EXPECT_EQ(model.visibility().window, 1000 - kSinkTokens);
  EXPECT_EQ(model.visibility().sink, kSinkTokens);
}

TEST(Families, Gemma2HasWindowsInEverySecondLayerAndItsOwnDefaults) {
  TinyModel tiny("gemma2");
  tiny.keys["gemma2.block_count"] = 4U;
  tiny.keys["gemma2.attention.key_length"] = 32U;
  const ModelShape model = describe_model(tiny.file()).value();
  ASSERT_EQ(model.layers.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const LayerShape& layer = model.layers[i];
    EXPECT_EQ(layer.attention.window, i % 2 == 0 ? 4096 : 0);
    EXPECT_EQ(layer.attention.score_cap, 50.0F);
    EXPECT_FLOAT_EQ(layer.attention.scale, 1.0F / std::sqrt(32.0F));
    EXPECT_EQ(layer.attention_post_norm.name, "blk." + std::to_string(i) + ".post_attention_norm");
    EXPECT_EQ(layer.feed_forward_post_norm.name, "blk." + std::to_string(i) + ".post_ffw_norm");
  }
  EXPECT_EQ(model.visibility().window, 0) << "every second layer sees everything";
  EXPECT_EQ(model.input.scale, 8.0F);
  EXPECT_EQ(model.output.cap, 30.0F);
}

// As its authors and llama.cpp do: no key tells it.
TEST(Families, Gemma2Of27BScalesScoresByTheWidthOverTheHeads) {
  TinyModel tiny("gemma2");
  tiny.keys["gemma2.block_count"] = 46U;
  tiny.keys["gemma2.attention.key_length"] = 32U;
  EXPECT_FLOAT_EQ(describe_model(tiny.file()).value().layers[7].attention.scale, 1.0F / std::sqrt(16.0F));
}

TEST(Families, Gpt2HasNoRotationAndOneTensorForQueriesKeysAndValues) {
  TinyModel tiny("gpt2");
  tiny.keys["gpt2.attention.layer_norm_epsilon"] = 1e-5F;
  tiny.tensors["blk.0.attn_qkv.weight"] = {{64, 128}};
  const ModelShape model = describe_model(tiny.file()).value();
  EXPECT_TRUE(model.rotary.empty());
  const AttentionShape& attention = model.layers.front().attention;
  EXPECT_EQ(attention.rotary, kNoRotary);
  EXPECT_EQ(attention.value.name, "blk.0.attn_qkv");
  EXPECT_EQ(attention.value.first_output, 96);
  EXPECT_EQ(attention.value.stored_outputs, 128);
  tiny.keys.erase("gpt2.attention.layer_norm_epsilon");
  const auto missing = describe_model(tiny.file());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr("gpt2.attention.layer_norm_epsilon"), HasSubstr("missing")));
}

struct Broken {
  const char* key;
  TinyModel::Value value;
  const char* found;
  const char* expected;
};

TEST(Families, ThatHaveNoExpertsRefuseThem) {
  TinyModel tiny("smollm3");
  tiny.keys["smollm3.expert_count"] = 8U;
  EXPECT_THAT(describe_model(tiny.file()).error().message, HasSubstr("a mixture of experts, which this build cannot compute"));
}

TEST(Families, NameTheKeyOfExpertsThatIsWrong) {
  const std::vector<Broken> cases = {
      {"qwen3moe.expert_used_count", 9U, "is 9", "from 1 to 8"},
      {"qwen3moe.expert_group_count", 3U, "is 3", "a divisor of the 8 experts"},
      {"qwen3moe.expert_group_used_count", 2U, "2 of 1 groups", "cannot be chosen"},
      {"qwen3moe.expert_gating_func", 7U, "is 7", "1, 2 or 3"},
      {"qwen3moe.expert_feed_forward_length", 0U, "is 0", "from 1 to"},
  };
  for (const Broken& broken : cases) {
    TinyModel tiny("qwen3moe");
    tiny.keys["qwen3moe.expert_count"] = 8U;
    tiny.keys["qwen3moe.expert_used_count"] = 2U;
    tiny.keys[broken.key] = broken.value;
    const auto result = describe_model(tiny.file());
    ASSERT_FALSE(result) << broken.key;
    EXPECT_THAT(result.error().message, AllOf(HasSubstr("tiny.gguf"), HasSubstr(broken.found), HasSubstr(broken.expected)));
  }
}

// Its gate is missing: the layer is not computed without.
TEST(Families, NameATensorOfExpertsThatIsMissing) {
  TinyModel tiny("qwen3moe");
  tiny.keys["qwen3moe.expert_count"] = 8U;
  tiny.keys["qwen3moe.expert_used_count"] = 2U;
  for (const char* part : {"attn_q_norm", "attn_k_norm"}) tiny.tensors[std::string("blk.0.") + part + ".weight"] = {{16}};
  for (const char* part : {"ffn_gate", "ffn_up", "ffn_down"}) tiny.tensors.erase(std::string("blk.0.") + part + ".weight");
  tiny.tensors["blk.0.ffn_gate_inp.weight"] = {{64, 8}};
  tiny.tensors["blk.0.ffn_up_exps.weight"] = {{64, 96, 8}};
  tiny.tensors["blk.0.ffn_down_exps.weight"] = {{96, 64, 8}};
  const files::GgufFile file = tiny.file();
  const auto checked = check_weights(file, describe_model(file).value(), 64, kernels::best_kernel_table());
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("blk.0.ffn_gate_exps.weight: is missing, expected shape [64, 96, 8]"));
}

TEST(Families, NameTheKeyThatIsWrong) {
  const std::vector<Broken> cases = {
      {"llama.block_count", 0U, "is 0", "from 1 to"},
      {"llama.block_count", std::string("two"), "a string", "integer"},
      {"llama.embedding_length", 4000000000U, "is 4000000000", "from 1 to"},
      {"llama.context_length", 4000000000U, "is 4000000000", "from 1 to"},
      {"llama.attention.head_count", 5U, "is 2", "a divisor of llama.attention.head_count = 5"},
      {"llama.attention.head_count", 32768U, "is 32768", "from 1 to 16384"},
      {"llama.attention.head_count_kv", 3U, "is 3", "a divisor of"},
      {"llama.attention.head_count_kv", std::vector<std::uint32_t>{3, 2}, "is 3", "a divisor of"},
      {"llama.attention.layer_norm_rms_epsilon", -1.0F, "is -1", "a number from"},
      {"llama.attention.value_length", 8U, "is 8", "expected 16"},
      {"llama.rope.dimension_count", 18U, "is 18", "up to the head size 16"},
      {"llama.rope.dimension_count", 7U, "is 7", "an even number"},
      {"llama.rope.freq_base", 0.0F, "is 0", "a number from"},
      {"llama.attention.sliding_window", 4000000000U, "is 4000000000", "a number up to"},
      {"llama.rope.scaling.type", std::string("cubic"), "\"cubic\"", "none, linear, yarn or longrope"},
      {"llama.expert_count", 8U, "llama.expert_used_count", "is missing"},
      {"llama.attention.causal", false, "llama.attention.causal is false", "cannot compute"},
      {"general.architecture", std::string("mamba"), "\"mamba\"", "does not know; the nearest are "},
      {"general.architecture", std::string("lama"), "\"lama\"", "the nearest are llama"},
      {"general.architecture", std::string("t5"), "\"t5\"", "an encoder-decoder"},
  };
  for (const Broken& broken : cases) {
    TinyModel tiny;
    tiny.keys[broken.key] = broken.value;
    const auto result = describe_model(tiny.file());
    ASSERT_FALSE(result) << broken.key;
    EXPECT_THAT(result.error().message, AllOf(HasSubstr("tiny.gguf"), HasSubstr(broken.found), HasSubstr(broken.expected)));
  }
}

TEST(Families, NameTheKeyThatIsMissing) {
  for (const char* key : {"llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
                          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    TinyModel tiny;
    tiny.keys.erase(key);
    const auto result = describe_model(tiny.file());
    ASSERT_FALSE(result) << key;
    EXPECT_THAT(result.error().message, AllOf(HasSubstr(key), HasSubstr("missing")));
  }
}

TEST(Families, HoldTheVocabularyAgainstTheEmbedding) {
  braid::test::GgufWriter writer;
  const std::vector<float> values(8, 0.0F);
  writer.string("general.architecture", "llama").strings("tokenizer.ggml.tokens", {"a", "b", "c"});
  for (const char* key : {"context_length", "block_count", "embedding_length", "feed_forward_length", "attention.head_count"})
    writer.u32(std::string("llama.") + key, key == std::string("embedding_length") ? 4 : 1);
  writer.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F).tensor_f32("token_embd.weight", {4, 2}, values);
  const auto result = describe_model(files::GgufFile::from_bytes(writer.source()).value());
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("tokenizer.ggml.tokens has 3"), HasSubstr("the 2 rows")));
}

}  // namespace
}  // namespace braid::model::test
