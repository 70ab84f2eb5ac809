// Encoders whose queries and keys are rotated by their positions.
#include "model/encoders/encoder_families.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace braid::model {
namespace {

// rope_parameters of current configurations, of one kind of layers where they differ; or the older keys.
double rotary_base(FolderConfig& config, std::string_view kind, FolderConfig::Names older, double fallback) {
  if (auto parameters = config.part("rope_parameters")) {
    if (auto own = parameters->part(kind)) return own->number({"rope_theta"}, fallback, 1.0, 1e12);
    return parameters->number({"rope_theta"}, fallback, 1.0, 1e12);
  }
  return config.number(older, fallback, 1.0, 1e12);
}

void refuse_scaled_rotation(FolderConfig& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    auto part = config.part(key);
    if (!part) continue;
    const std::string type = part->text({"rope_type", "type"}, "default");
    if (type != "default") config.fail(ErrorCode::kUnsupported, fmt::format("'{}' is of the type '{}'; expected 'default'", key, type));
  }
}

// BERT's head: the first token's state through the pooler.
void add_pooler_head(EncoderShape& shape, const EncoderTensors& tensors, const std::string& prefix) {
  const auto out = tensors.read("classifier.weight");
  if (!out) return;
  shape.head = EncoderHead{.pooling = Pooling::kFirst,
                           .dense = {},
                           .activation = EncoderActivation::kTanh,
                           .norm = {},
                           .out = linear_of("classifier", classes_of(*out), shape.width)};
  if (tensors.has(prefix + "pooler.dense.weight")) shape.head->dense = linear_of(prefix + "pooler.dense", shape.width, shape.width);
}

// Of transformers itself: separate products, and a gate where there is one.
void add_native_layers(EncoderShape& shape, const EncoderTensors& tensors, const std::string& prefix, std::int64_t layers,
                       std::int64_t inner) {
  const std::int64_t width = shape.width;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}layers.{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    layer.query = linear_of(own + "self_attn.q_proj", width, width);
    layer.key = linear_of(own + "self_attn.k_proj", width, width);
    layer.value = linear_of(own + "self_attn.v_proj", width, width);
    layer.out = linear_of(own + "self_attn.o_proj", width, width);
    layer.joined_attention = norm_of(own + "post_attention_layernorm");
    const bool gated = tensors.has(own + "mlp.gate_proj.weight");
    if (gated) layer.gate = linear_of(own + "mlp.gate_proj", inner, width);
    layer.up = linear_of(own + (gated ? "mlp.up_proj" : "mlp.fc1"), inner, width);
    layer.down = linear_of(own + (gated ? "mlp.down_proj" : "mlp.fc2"), width, inner);
    layer.joined_feed_forward = norm_of(own + "post_mlp_layernorm");
  }
}

// Of nomic-ai's own code, and of Jina AI's for v3: one tensor for queries, keys and values; in some layers of v2 experts.
void add_joint_layers(EncoderShape& shape, const EncoderTensors& tensors, const std::string& prefix, std::int64_t layers,
                      std::int64_t inner, FolderConfig& config) {
  const std::int64_t width = shape.width;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.layers.{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    const std::string attention = own + (tensors.has(own + "mixer.Wqkv.weight") ? "mixer." : "attn.");
    layer.query = linear_of(attention + "Wqkv", width, width);
    layer.key = linear_of(attention + "Wqkv", width, width, width);
    layer.value = linear_of(attention + "Wqkv", width, width, 2 * width);
    layer.out = linear_of(attention + "out_proj", width, width);
    layer.joined_attention = norm_of(own + "norm1");
    layer.joined_feed_forward = norm_of(own + "norm2");
    const bool gated = tensors.has(own + "mlp.fc11.weight");
    layer.up = linear_of(own + (gated ? "mlp.fc11" : "mlp.fc1"), inner, width);
    layer.down = linear_of(own + "mlp.fc2", width, inner);
    if (gated) layer.gate = linear_of(own + "mlp.fc12", inner, width);
    if (!tensors.has(own + "mlp.router.layer.weight")) continue;
    EncoderExperts& experts = layer.experts;
    experts.count = static_cast<std::int32_t>(config.count({"num_experts"}, std::nullopt, 1, 4096));
    experts.used = static_cast<std::int32_t>(config.count({"moe_top_k"}, 1, 1, experts.count));
    experts.router = linear_of(own + "mlp.router.layer", experts.count, width);
    experts.up = own + "mlp.experts.mlp.w1";
    experts.down = own + "mlp.experts.mlp.w2";
    experts.bias = own + "mlp.experts.bias";
  }
}

// Jina v3's low-rank parts, where its matrices have them.
void add_tasks(EncoderShape& shape, FolderConfig& config, const EncoderTensors& tensors) {
  if (!tensors.has(part_of(shape.tokens, "0.lora_A"))) return;
  shape.tasks = config.texts("lora_adaptations");
  shape.task_rank = config.count({"lora_rank"}, std::nullopt, 1, 4096);
  const double alpha = config.number({"lora_alpha"}, 1.0, 0.0, 1e6);
  shape.task_scale = static_cast<float>(alpha / static_cast<double>(std::max<std::int64_t>(1, shape.task_rank)));
}

}  // namespace

EncoderShape nomic_bert_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  refuse_scaled_rotation(config);
  std::string prefix;
  for (const char* name : {"bert.", "roberta.", "nomic_bert.", "model."})
    if (prefix.empty()) prefix = prefix_of(tensors, name, "embeddings.word_embeddings.weight");
  shape.tokens = prefix + "embeddings.word_embeddings.weight";
  if (const std::string types = prefix + "embeddings.token_type_embeddings.weight"; tensors.has(types)) shape.types = types;
  shape.type_count = config.count({"type_vocab_size"}, 2, 1, 1000);
  const std::int64_t layers = config.count({"num_hidden_layers", "n_layer"}, std::nullopt, 1, 1000);
  const std::int64_t inner = config.count({"intermediate_size", "n_inner"}, 4 * shape.width, 1, 1 << 20);
  if (tensors.has(prefix + "layers.0.self_attn.q_proj.weight")) {
    shape.embedding_norm = norm_of(prefix + "embeddings.LayerNorm");
    add_native_layers(shape, tensors, prefix, layers, inner);
  } else {
    if (config.number({"rotary_emb_fraction"}, 1.0, 0.0, 1.0) != 1.0 || config.flag({"prenorm"}, false) ||
        config.flag({"rotary_emb_interleaved"}, false))
      config.fail(ErrorCode::kUnsupported, "'rotary_emb_fraction', 'prenorm' or 'rotary_emb_interleaved' is not what nomic-embed has");
    shape.embedding_norm = norm_of(prefix + "emb_ln");
    add_joint_layers(shape, tensors, prefix, layers, inner, config);
  }
  const bool is_jina = config.model_type().find("jina") != std::string::npos;
  if (const std::string positions = prefix + "embeddings.position_embeddings.weight"; tensors.has(positions)) {
    shape.positions = positions;  // Jina's second reranker
    shape.first_position = config.count({"pad_token_id"}, 1, 0, 1 << 20) + 1;
    shape.context -= static_cast<std::int32_t>(shape.first_position);
  } else {
    shape.rotary = {{.base = rotary_base(config, "full_attention", {"rotary_emb_base", "rope_theta"}, is_jina ? 20'000.0 : 1'000.0)}};
  }
  if (!config.has({"hidden_act"}) && config.text({"activation_function"}, "swiglu") == "swiglu" && !is_jina)
    shape.activation = EncoderActivation::kSilu;
  add_tasks(shape, config, tensors);
  add_pooler_head(shape, tensors, prefix);
  if (!shape.head) add_roberta_head(shape, tensors, EncoderActivation::kTanh);
  return shape;
}

EncoderShape gte_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  const std::int64_t width = shape.width;
  const std::string prefix = prefix_of(tensors, "new.", "embeddings.word_embeddings.weight");
  shape.tokens = prefix + "embeddings.word_embeddings.weight";
  if (const std::string types = prefix + "embeddings.token_type_embeddings.weight"; tensors.has(types)) shape.types = types;
  shape.type_count = config.count({"type_vocab_size"}, 0, 0, 1000);
  shape.embedding_norm = norm_of(prefix + "embeddings.LayerNorm");
  const std::int64_t inner = config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20);
  const std::int64_t layers = config.count({"num_hidden_layers"}, std::nullopt, 1, 1000);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.layer.{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    layer.query = linear_of(own + "attention.qkv_proj", width, width);
    layer.key = linear_of(own + "attention.qkv_proj", width, width, width);
    layer.value = linear_of(own + "attention.qkv_proj", width, width, 2 * width);
    layer.out = linear_of(own + "attention.o_proj", width, width);
    layer.joined_attention = norm_of(own + "attn_ln");
    layer.up = linear_of(own + "mlp.up_gate_proj", inner, width);
    layer.gate = linear_of(own + "mlp.up_gate_proj", inner, width, inner);
    layer.down = linear_of(own + "mlp.down_proj", width, inner);
    layer.joined_feed_forward = norm_of(own + "mlp_ln");
  }
  // "ntk": a larger base, and positions stretched besides, as their code has it.
  double base = config.number({"rope_theta"}, 10'000.0, 1.0, 1e12);
  double stretch = 1.0;
  if (auto scaling = config.part("rope_scaling")) {
    const std::string type = scaling->text({"type", "rope_type"}, "");
    if (type != "ntk") config.fail(ErrorCode::kUnsupported, fmt::format("'rope_scaling' is of the type '{}'; expected 'ntk'", type));
    const double factor = scaling->number({"factor"}, std::nullopt, 1.0, 1e6);
    base *= factor;
    stretch = std::pow(factor, 2.0 / std::max(1, shape.head_dim));
  }
  shape.rotary = {{.base = base, .stretch = stretch}};
  add_pooler_head(shape, tensors, prefix);
  return shape;
}

EncoderShape modernbert_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  const std::int64_t width = shape.width;
  shape.activation = activation_of(config, {"hidden_activation"}, "gelu");
  const std::string prefix = prefix_of(tensors, "model.", "embeddings.tok_embeddings.weight");
  shape.tokens = prefix + "embeddings.tok_embeddings.weight";
  shape.embedding_norm = norm_of(prefix + "embeddings.norm");
  shape.final_norm = norm_of(prefix + "final_norm");
  const std::int64_t inner = config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20);
  const std::int64_t layers = config.count({"num_hidden_layers"}, std::nullopt, 1, 1000);
  const auto window = static_cast<std::int32_t>(config.count({"local_attention"}, 128, 2, 1 << 20) / 2);
  const std::int64_t every = config.count({"global_attn_every_n_layers"}, 3, 1, 1000);
  const std::vector<std::string> types = config.texts("layer_types");
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}layers.{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    const bool local =
        static_cast<std::size_t>(i) < types.size() ? types[static_cast<std::size_t>(i)] == "sliding_attention" : i % every != 0;
    if (local) layer.window = window;
    layer.rotary = local ? 1 : 0;
    if (tensors.has(own + "attn_norm.weight")) layer.before_attention = norm_of(own + "attn_norm");
    layer.query = linear_of(own + "attn.Wqkv", width, width);
    layer.key = linear_of(own + "attn.Wqkv", width, width, width);
    layer.value = linear_of(own + "attn.Wqkv", width, width, 2 * width);
    layer.out = linear_of(own + "attn.Wo", width, width);
    layer.before_feed_forward = norm_of(own + "mlp_norm");
    layer.gate = linear_of(own + "mlp.Wi", inner, width);
    layer.up = linear_of(own + "mlp.Wi", inner, width, inner);
    layer.down = linear_of(own + "mlp.Wo", width, inner);
  }
  shape.rotary = {{.base = rotary_base(config, "full_attention", {"global_rope_theta"}, 160'000.0)},
                  {.base = rotary_base(config, "sliding_attention", {"local_rope_theta"}, 10'000.0)}};
  if (const auto out = tensors.read("classifier.weight"); out)
    shape.head = EncoderHead{.pooling = config.text({"classifier_pooling"}, "cls") == "mean" ? Pooling::kMean : Pooling::kFirst,
                             .dense = linear_of("head.dense", width, width),
                             .activation = activation_of(config, {"classifier_activation"}, "gelu"),
                             .norm = norm_of("head.norm"),
                             .out = linear_of("classifier", classes_of(*out), width)};
  return shape;
}

// Gemma 3 with attention in both directions: its layers are a decoder's.
EncoderShape gemma_embedding_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  const std::int64_t width = shape.width;
  shape.kv_heads = static_cast<std::int32_t>(config.count({"num_key_value_heads"}, shape.heads, 1, shape.heads));
  shape.head_dim = static_cast<std::int32_t>(config.count({"head_dim"}, 256, 2, 1024));
  shape.activation = activation_of(config, {"hidden_activation"}, "gelu_pytorch_tanh");
  shape.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(width)));
  shape.score_scale = static_cast<float>(1.0 / std::sqrt(config.number({"query_pre_attn_scalar"}, shape.head_dim, 1e-6, 1e9)));
  const std::string prefix = prefix_of(tensors, "model.", "embed_tokens.weight");
  shape.tokens = prefix + "embed_tokens.weight";
  shape.final_norm = rms_norm_of(prefix + "norm", 1.0F);
  const std::int64_t inner = config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20);
  const std::int64_t layers = config.count({"num_hidden_layers"}, std::nullopt, 1, 1000);
  const auto window = static_cast<std::int32_t>(config.count({"sliding_window"}, 4096, 2, 1 << 24) / 2);
  const std::int64_t pattern = config.count({"sliding_window_pattern", "_sliding_window_pattern"}, 6, 1, 1000);
  const std::vector<std::string> types = config.texts("layer_types");
  const std::int64_t queries = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t keys = std::int64_t{shape.kv_heads} * shape.head_dim;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}layers.{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    const bool local =
        static_cast<std::size_t>(i) < types.size() ? types[static_cast<std::size_t>(i)] == "sliding_attention" : (i + 1) % pattern != 0;
    if (local) layer.window = window;
    layer.rotary = local ? 1 : 0;
    layer.before_attention = rms_norm_of(own + "input_layernorm", 1.0F);
    layer.query = linear_of(own + "self_attn.q_proj", queries, width);
    layer.key = linear_of(own + "self_attn.k_proj", keys, width);
    layer.value = linear_of(own + "self_attn.v_proj", keys, width);
    layer.out = linear_of(own + "self_attn.o_proj", width, queries);
    layer.query_norm = rms_norm_of(own + "self_attn.q_norm", 1.0F);
    layer.key_norm = rms_norm_of(own + "self_attn.k_norm", 1.0F);
    layer.after_attention = rms_norm_of(own + "post_attention_layernorm", 1.0F);
    layer.before_feed_forward = rms_norm_of(own + "pre_feedforward_layernorm", 1.0F);
    layer.gate = linear_of(own + "mlp.gate_proj", inner, width);
    layer.up = linear_of(own + "mlp.up_proj", inner, width);
    layer.down = linear_of(own + "mlp.down_proj", width, inner);
    layer.after_feed_forward = rms_norm_of(own + "post_feedforward_layernorm", 1.0F);
  }
  shape.rotary = {{.base = rotary_base(config, "full_attention", {"rope_theta"}, 1e6)},
                  {.base = rotary_base(config, "sliding_attention", {"rope_local_base_freq"}, 1e4)}};
  return shape;
}

}  // namespace braid::model
