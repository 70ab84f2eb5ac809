// Jina v2 (Günther et al. 2023): BERT without learned positions, whose scores fall with the distance, and with a gated feed-forward.
#include "model/encoders/encoder_families.h"

#include <fmt/format.h>
#include <string>

namespace braid::model {
namespace {

// The gate's rows are the first ones of gated_layers, and the last ones of up_gated_layer.
void name_jina_feed_forward(EncoderLayer& layer, const std::string& own, std::int64_t width, std::int64_t inner,
                            const EncoderTensors& tensors) {
  if (tensors.has(own + "mlp.up_gated_layer.weight")) {
    layer.up = linear_of(own + "mlp.up_gated_layer", inner, width);
    layer.gate = linear_of(own + "mlp.up_gated_layer", inner, width, inner);
    layer.down = linear_of(own + "mlp.down_layer", width, inner);
    layer.joined_feed_forward = norm_of(own + "layer_norm_2");
  } else if (tensors.has(own + "mlp.gated_layers.weight")) {
    layer.gate = linear_of(own + "mlp.gated_layers", inner, width);
    layer.up = linear_of(own + "mlp.gated_layers", inner, width, inner);
    layer.down = linear_of(own + "mlp.wo", width, inner);
    layer.joined_feed_forward = norm_of(own + "mlp.layernorm");
  } else {
    layer.up = linear_of(own + "intermediate.dense", inner, width);
    layer.down = linear_of(own + "output.dense", width, inner);
    layer.joined_feed_forward = norm_of(own + "output.LayerNorm");
  }
}

void name_jina_attention(EncoderLayer& layer, const std::string& own, std::int64_t width, const EncoderTensors& tensors) {
  layer.query = linear_of(own + "attention.self.query", width, width);
  layer.key = linear_of(own + "attention.self.key", width, width);
  layer.value = linear_of(own + "attention.self.value", width, width);
  layer.out = linear_of(own + "attention.output.dense", width, width);
  layer.joined_attention = norm_of(own + "attention.output.LayerNorm");
  if (tensors.has(own + "layer_norm_1.weight")) layer.rejoined_attention = norm_of(own + "layer_norm_1");
  if (!tensors.has(own + "attention.self.layer_norm_q.weight")) return;
  layer.query_norm = norm_of(own + "attention.self.layer_norm_q");
  layer.key_norm = norm_of(own + "attention.self.layer_norm_k");
}

EncoderActivation gate_activation(FolderConfig& config) {
  const std::string form = config.text({"feed_forward_type"}, "original");
  if (form == "reglu") return EncoderActivation::kRelu;
  if (form != "geglu" && form != "original")
    config.fail(ErrorCode::kUnsupported, fmt::format("'feed_forward_type' is '{}'; expected 'original', 'geglu' or 'reglu'", form));
  return form == "original" ? activation_of(config, {"hidden_act"}, "gelu") : EncoderActivation::kGelu;
}

}  // namespace

EncoderShape jina_bert_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  const std::string prefix = prefix_of(tensors, "bert.", "embeddings.word_embeddings.weight");
  shape.tokens = prefix + "embeddings.word_embeddings.weight";
  if (const std::string types = prefix + "embeddings.token_type_embeddings.weight"; tensors.has(types)) shape.types = types;
  shape.type_count = config.count({"type_vocab_size"}, 2, 1, 1000);
  shape.embedding_norm = norm_of(prefix + "embeddings.LayerNorm");
  shape.slopes = true;
  shape.norms_all_heads = true;
  shape.activation = gate_activation(config);
  const std::int64_t layers = config.count({"num_hidden_layers"}, std::nullopt, 1, 1000);
  const std::int64_t inner = config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.layer.{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    name_jina_attention(layer, own, shape.width, tensors);
    name_jina_feed_forward(layer, own, shape.width, inner, tensors);
  }
  const auto out = tensors.read("classifier.weight");
  if (!out) return shape;
  shape.head = EncoderHead{.pooling = Pooling::kFirst,
                           .dense = linear_of(prefix + "pooler.dense", shape.width, shape.width),
                           .activation = EncoderActivation::kTanh,
                           .norm = {},
                           .out = linear_of("classifier", classes_of(*out), shape.width)};
  return shape;
}

}  // namespace braid::model
