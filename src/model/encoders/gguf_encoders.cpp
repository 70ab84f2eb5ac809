// Encoders from GGUF files, by llama.cpp's names: BERT (what RoBERTa, XLM-R and DistilBERT are converted to), nomic-bert with and without
// experts, Jina v2 and v3 (its tasks lie in files of their own, which are not served), ModernBERT and EmbeddingGemma.
#include "model/encoders/encoder_families.h"
#include "model/families/gguf_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>

namespace braid::model {
namespace {

constexpr std::array<std::string_view, 7> kArchitectures = {"bert",           "nomic-bert",   "modern-bert", "gemma-embedding",
                                                            "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3"};

EncoderShape gguf_sizes(GgufKeys& keys, const files::GgufFile& file, const std::string& architecture) {
  EncoderShape shape;
  shape.family = architecture;
  shape.width = keys.size("embedding_length", std::nullopt);
  shape.embedded = shape.width;
  shape.heads = keys.size("attention.head_count", std::nullopt, kMaxHeads);
  shape.kv_heads = keys.size("attention.head_count_kv", static_cast<std::uint64_t>(shape.heads), kMaxHeads);
  shape.head_dim = keys.size("attention.key_length", static_cast<std::uint64_t>(shape.width / shape.heads), kMaxHeadDim);
  shape.context = keys.size("context_length", std::nullopt, kMaxContext);
  const bool rms = architecture == "gemma-embedding";
  shape.epsilon = keys.number(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-12, 0.0, 1.0);
  const files::GgufTensor* const tokens = file.tensor("token_embd.weight");
  if (tokens == nullptr || tokens->shape.size() != 2) {
    keys.fail(ErrorCode::kBadFile, "the tensor token_embd.weight is missing");
  } else {
    shape.vocabulary = tokens->shape[1];
  }
  shape.tokens = "token_embd.weight";
  return shape;
}

// Queries, keys and values in a tensor each, or all in one.
void name_attention(EncoderLayer& layer, const std::string& own, const EncoderShape& shape, const EncoderTensors& tensors) {
  const std::int64_t queries = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t keys = std::int64_t{shape.kv_heads} * shape.head_dim;
  if (tensors.has(own + "attn_qkv.weight")) {
    layer.query = linear_of(own + "attn_qkv", queries, shape.width);
    layer.key = linear_of(own + "attn_qkv", keys, shape.width, queries);
    layer.value = linear_of(own + "attn_qkv", keys, shape.width, queries + keys);
  } else {
    layer.query = linear_of(own + "attn_q", queries, shape.width);
    layer.key = linear_of(own + "attn_k", keys, shape.width);
    layer.value = linear_of(own + "attn_v", keys, shape.width);
  }
  layer.out = linear_of(own + "attn_output", shape.width, queries);
}

void name_feed_forward(EncoderLayer& layer, const std::string& own, const EncoderShape& shape, std::int64_t inner,
                       const EncoderTensors& tensors) {
  const auto up = tensors.read(own + "ffn_up.weight");
  const bool joined = up && up->shape.front() == 2 * inner;  // the gate's rows come first, but in Jina's model of code
  const bool up_first = tensors.has(own + "attn_q_norm.weight");
  if (joined) layer.gate = linear_of(own + "ffn_up", inner, shape.width, up_first ? inner : 0);
  layer.up = linear_of(own + "ffn_up", inner, shape.width, joined && !up_first ? inner : 0);
  if (tensors.has(own + "ffn_gate.weight")) layer.gate = linear_of(own + "ffn_gate", inner, shape.width);
  layer.down = linear_of(own + "ffn_down", shape.width, inner);
}

// In place of the feed-forward, where the layer has them.
void name_experts(EncoderLayer& layer, const std::string& own, const EncoderShape& shape, GgufKeys& keys, const EncoderTensors& tensors) {
  if (!tensors.has(own + "ffn_gate_inp.weight")) return;
  EncoderExperts& experts = layer.experts;
  experts.count = static_cast<std::int32_t>(keys.size("expert_count", std::nullopt));
  experts.used = static_cast<std::int32_t>(keys.size("expert_used_count", std::nullopt));
  experts.router = linear_of(own + "ffn_gate_inp", experts.count, shape.width);
  experts.up = own + "ffn_up_exps.weight";
  experts.down = own + "ffn_down_exps.weight";
  experts.down_turned = false;
  if (experts.used > experts.count) keys.fail(ErrorCode::kBadFile, "more experts are used than there are");
}

// Norms behind each branch.
void bert_layers(EncoderShape& shape, std::int64_t layers, std::int64_t inner, GgufKeys& keys, const EncoderTensors& tensors) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("blk.{}.", i);
    EncoderLayer& layer = shape.layers.emplace_back();
    name_attention(layer, own, shape, tensors);
    layer.joined_attention = norm_of(own + "attn_output_norm");
    if (tensors.has(own + "attn_norm_2.weight")) layer.rejoined_attention = norm_of(own + "attn_norm_2");
    if (tensors.has(own + "attn_q_norm.weight")) layer.query_norm = norm_of(own + "attn_q_norm");
    if (tensors.has(own + "attn_k_norm.weight")) layer.key_norm = norm_of(own + "attn_k_norm");
    name_feed_forward(layer, own, shape, inner, tensors);
    name_experts(layer, own, shape, keys, tensors);
    layer.joined_feed_forward = norm_of(own + "layer_output_norm");
  }
}

void modern_layers(EncoderShape& shape, std::int64_t layers, std::int64_t inner, std::int32_t window, const EncoderTensors& tensors) {
  constexpr std::int64_t kGlobalEvery = 3;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("blk.{}.", i);
    EncoderLayer& layer = shape.layers.emplace_back();
    const bool local = i % kGlobalEvery != 0;
    if (local) layer.window = window;
    layer.rotary = local ? 1 : 0;
    if (tensors.has(own + "attn_norm.weight")) layer.before_attention = norm_of(own + "attn_norm");
    name_attention(layer, own, shape, tensors);
    layer.before_feed_forward = norm_of(own + "ffn_norm");
    name_feed_forward(layer, own, shape, inner, tensors);
  }
}

void gemma_layers(EncoderShape& shape, std::int64_t layers, std::int64_t inner, std::int32_t window, const EncoderTensors& tensors) {
  constexpr std::int64_t kGlobalEvery = 6;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("blk.{}.", i);
    EncoderLayer& layer = shape.layers.emplace_back();
    const bool local = (i + 1) % kGlobalEvery != 0;
    if (local) layer.window = window;
    layer.rotary = local ? 1 : 0;
    layer.before_attention = rms_norm_of(own + "attn_norm", 0.0F);
    name_attention(layer, own, shape, tensors);
    layer.query_norm = rms_norm_of(own + "attn_q_norm", 0.0F);
    layer.key_norm = rms_norm_of(own + "attn_k_norm", 0.0F);
    layer.after_attention = rms_norm_of(own + "post_attention_norm", 0.0F);
    layer.before_feed_forward = rms_norm_of(own + "ffn_norm", 0.0F);
    name_feed_forward(layer, own, shape, inner, tensors);
    layer.after_feed_forward = rms_norm_of(own + "post_ffw_norm", 0.0F);
  }
}

void add_embeddings(EncoderShape& shape, const EncoderTensors& tensors) {
  if (tensors.has("position_embd.weight")) shape.positions = "position_embd.weight";
  if (tensors.has("token_types.weight")) {
    shape.types = "token_types.weight";
    shape.type_count = 1;
    if (const auto types = tensors.read(shape.types)) shape.type_count = types->shape.size() == 2 ? types->shape.front() : 1;
  }
  if (tensors.has("token_embd_norm.weight")) shape.embedding_norm = norm_of("token_embd_norm");
}

void add_head(EncoderShape& shape, const EncoderTensors& tensors) {
  const auto out = tensors.read("cls.output.weight");
  if (!out) return;
  shape.head = EncoderHead{.pooling = Pooling::kFirst,
                           .dense = {},
                           .activation = EncoderActivation::kNone,
                           .norm = {},
                           .out = linear_of("cls.output", out->shape.front(), shape.width)};
  if (!tensors.has("cls.weight")) return;
  shape.head->dense = linear_of("cls", shape.width, shape.width);
  shape.head->activation = shape.family == "modern-bert" ? EncoderActivation::kGelu : EncoderActivation::kTanh;
  if (tensors.has("cls.norm.weight")) shape.head->norm = norm_of("cls.norm");
}

// sentence-transformers' Dense modules, as llama.cpp's converter keeps them: what follows pooling, without a bias and an activation.
void add_dense(EncoderShape& shape, GgufKeys& keys, const EncoderTensors& tensors) {
  std::int64_t width = shape.width;
  for (const char* name : {"dense_2", "dense_3"}) {
    const std::string weight = std::string(name) + ".weight";
    if (!tensors.has(weight)) continue;
    const auto matrix = tensors.read(weight);
    if (!matrix) return keys.fail(matrix.error().code, matrix.error().message);
    if (matrix->shape.size() != 2 || matrix->shape[1] != width)
      return keys.fail(ErrorCode::kBadFile, fmt::format("the tensor {} does not take the {} numbers of a vector", weight, width));
    width = matrix->shape[0];
    shape.dense.push_back({linear_of(name, width, matrix->shape[1]), EncoderActivation::kNone});
  }
}

}  // namespace

bool is_encoder_architecture(std::string_view architecture) {
  return std::ranges::find(kArchitectures, architecture) != kArchitectures.end();
}

Result<EncoderShape> read_encoder_gguf(const files::GgufFile& file) {
  const auto architecture = file.string_or("general.architecture", "");
  if (!architecture) return architecture.error();
  const GgufTensors tensors(file);
  GgufKeys keys(file, *architecture);
  EncoderShape shape = gguf_sizes(keys, file, *architecture);
  const std::int64_t layers = keys.size("block_count", std::nullopt, kMaxLayers);
  const std::int64_t inner = keys.size("feed_forward_length", std::nullopt);
  const double base = keys.number("rope.freq_base", *architecture == "gemma-embedding" ? 1e6 : 1e4, 1.0, 1e12);
  add_embeddings(shape, tensors);
  add_head(shape, tensors);
  const bool is_gemma = *architecture == "gemma-embedding";
  if (!is_gemma && *architecture != "modern-bert") {
    shape.slopes = *architecture == "jina-bert-v2";
    shape.norms_all_heads = shape.slopes;
    if (*architecture != "bert" && !shape.slopes) shape.rotary = {{.base = base}};
    if (*architecture == "nomic-bert") shape.activation = EncoderActivation::kSilu;
    bert_layers(shape, layers, inner, keys, tensors);
  } else {
    const auto window = keys.size("attention.sliding_window", is_gemma ? 512 : 128, kMaxContext) / 2;
    shape.rotary = {{.base = base}, {.base = keys.number("rope.freq_base_swa", 1e4, 1.0, 1e12)}};
    if (is_gemma) {
      shape.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(shape.width)));
      shape.activation = EncoderActivation::kGeluTanh;
      shape.final_norm = rms_norm_of("output_norm", 0.0F);
      gemma_layers(shape, layers, inner, window, tensors);
    } else {
      shape.final_norm = norm_of("output_norm");
      modern_layers(shape, layers, inner, window, tensors);
    }
  }
  add_dense(shape, keys, tensors);
  if (!keys.error && shape.head_dim % 2 != 0) keys.fail(ErrorCode::kUnsupported, "heads have an odd width");
  if (keys.error) return *keys.error;
  return shape;
}

}  // namespace braid::model
