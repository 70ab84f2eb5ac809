// BERT and those that keep its layers: a norm after each branch, positions that are learned or distances.
#include "model/encoders/encoder_families.h"

#include <fmt/format.h>
#include <initializer_list>

namespace braid::model {
namespace {

// The names of a layer's tensors behind its prefix.
struct BertNames {
  const char* query;
  const char* key;
  const char* value;
  const char* out;
  const char* attention_norm;
  const char* up;
  const char* down;
  const char* feed_norm;
};

constexpr BertNames kBertNames = {"attention.self.query",       "attention.self.key", "attention.self.value", "attention.output.dense",
                                  "attention.output.LayerNorm", "intermediate.dense", "output.dense",         "output.LayerNorm"};
constexpr BertNames kDistilNames = {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
                                    "sa_layer_norm",   "ffn.lin1",        "ffn.lin2",        "output_layer_norm"};
constexpr BertNames kMpnetNames = {"attention.attn.q",    "attention.attn.k",   "attention.attn.v", "attention.attn.o",
                                   "attention.LayerNorm", "intermediate.dense", "output.dense",     "output.LayerNorm"};

void add_layers(EncoderShape& shape, std::int64_t layers, const std::string& prefix, std::int64_t inner, const BertNames& names) {
  const std::int64_t width = shape.width;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}{}.", prefix, i);
    EncoderLayer& layer = shape.layers.emplace_back();
    layer.query = linear_of(own + names.query, width, width);
    layer.key = linear_of(own + names.key, width, width);
    layer.value = linear_of(own + names.value, width, width);
    layer.out = linear_of(own + names.out, width, width);
    layer.joined_attention = norm_of(own + names.attention_norm);
    layer.up = linear_of(own + names.up, inner, width);
    layer.down = linear_of(own + names.down, width, inner);
    layer.joined_feed_forward = norm_of(own + names.feed_norm);
  }
}

void add_embeddings(EncoderShape& shape, const EncoderTensors& tensors, const std::string& prefix) {
  shape.tokens = prefix + "embeddings.word_embeddings.weight";
  shape.positions = prefix + "embeddings.position_embeddings.weight";
  if (const std::string types = prefix + "embeddings.token_type_embeddings.weight"; tensors.has(types)) shape.types = types;
  shape.embedding_norm = norm_of(prefix + "embeddings.LayerNorm");
}

void refuse_other_positions(FolderConfig& config) {
  const std::string kind = config.text({"position_embedding_type"}, "absolute");
  if (kind != "absolute") config.fail(ErrorCode::kUnsupported, fmt::format("'position_embedding_type' is '{}'; expected 'absolute'", kind));
}

}  // namespace

void add_roberta_head(EncoderShape& shape, const EncoderTensors& tensors, EncoderActivation activation) {
  const auto out = tensors.read("classifier.out_proj.weight");
  if (!out) return;
  shape.head = EncoderHead{.pooling = Pooling::kFirst,
                           .dense = linear_of("classifier.dense", shape.width, shape.width),
                           .activation = activation,
                           .norm = {},
                           .out = linear_of("classifier.out_proj", classes_of(*out), shape.width)};
}

EncoderShape bert_shape(FolderConfig& config, const EncoderTensors& tensors) {
  if (config.text({"position_embedding_type"}, "absolute") == "alibi") return jina_bert_shape(config, tensors);
  refuse_other_positions(config);
  EncoderShape shape = common_shape(config);
  const bool is_electra = config.model_type() == "electra";
  const std::string prefix = prefix_of(tensors, is_electra ? "electra." : "bert.", "embeddings.word_embeddings.weight");
  add_embeddings(shape, tensors, prefix);
  shape.type_count = config.count({"type_vocab_size"}, 2, 1, 1000);
  if (is_electra) {
    shape.embedded = config.count({"embedding_size"}, shape.width, 1, 1 << 20);
    if (shape.embedded != shape.width) shape.embedding_projection = linear_of(prefix + "embeddings_project", shape.width, shape.embedded);
  }
  add_layers(shape, config.count({"num_hidden_layers"}, std::nullopt, 1, 1000), prefix + "encoder.layer.",
             config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20), kBertNames);
  if (is_electra) {
    add_roberta_head(shape, tensors, EncoderActivation::kGelu);
  } else if (const auto out = tensors.read("classifier.weight"); out) {
    shape.head = EncoderHead{.pooling = Pooling::kFirst,
                             .dense = linear_of(prefix + "pooler.dense", shape.width, shape.width),
                             .activation = EncoderActivation::kTanh,
                             .norm = {},
                             .out = linear_of("classifier", classes_of(*out), shape.width)};
  }
  return shape;
}

EncoderShape roberta_shape(FolderConfig& config, const EncoderTensors& tensors) {
  const bool is_joint = tensors.has("roberta.encoder.layers.0.mixer.Wqkv.weight") || tensors.has("encoder.layers.0.mixer.Wqkv.weight");
  if (is_joint) return nomic_bert_shape(config, tensors);  // Jina AI's own code
  refuse_other_positions(config);
  EncoderShape shape = common_shape(config);
  const std::string prefix =
      prefix_of(tensors, config.model_type() == "camembert" ? "camembert." : "roberta.", "embeddings.word_embeddings.weight");
  const std::string found = prefix.empty() ? prefix_of(tensors, "roberta.", "embeddings.word_embeddings.weight") : prefix;
  add_embeddings(shape, tensors, found);
  shape.type_count = config.count({"type_vocab_size"}, 1, 1, 1000);
  shape.first_position = config.count({"pad_token_id"}, 1, 0, 1 << 20) + 1;
  shape.context -= static_cast<std::int32_t>(shape.first_position);
  add_layers(shape, config.count({"num_hidden_layers"}, std::nullopt, 1, 1000), found + "encoder.layer.",
             config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20), kBertNames);
  add_roberta_head(shape, tensors, EncoderActivation::kTanh);
  return shape;
}

EncoderShape distilbert_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  shape.activation = activation_of(config, {"activation"}, "gelu");
  const std::string prefix = prefix_of(tensors, "distilbert.", "embeddings.word_embeddings.weight");
  add_embeddings(shape, tensors, prefix);
  add_layers(shape, config.count({"n_layers"}, std::nullopt, 1, 1000), prefix + "transformer.layer.",
             config.count({"hidden_dim"}, std::nullopt, 1, 1 << 20), kDistilNames);
  if (const auto out = tensors.read("classifier.weight"); out)
    shape.head = EncoderHead{.pooling = Pooling::kFirst,
                             .dense = linear_of("pre_classifier", shape.width, shape.width),
                             .activation = EncoderActivation::kRelu,
                             .norm = {},
                             .out = linear_of("classifier", classes_of(*out), shape.width)};
  return shape;
}

EncoderShape mpnet_shape(FolderConfig& config, const EncoderTensors& tensors) {
  EncoderShape shape = common_shape(config);
  const std::string prefix = prefix_of(tensors, "mpnet.", "embeddings.word_embeddings.weight");
  add_embeddings(shape, tensors, prefix);
  shape.first_position = config.count({"pad_token_id"}, 1, 0, 1 << 20) + 1;
  shape.context -= static_cast<std::int32_t>(shape.first_position);
  shape.distance_bias = prefix + "encoder.relative_attention_bias.weight";
  shape.distance_buckets = config.count({"relative_attention_num_buckets"}, 32, 4, 256);
  add_layers(shape, config.count({"num_hidden_layers"}, std::nullopt, 1, 1000), prefix + "encoder.layer.",
             config.count({"intermediate_size"}, std::nullopt, 1, 1 << 20), kMpnetNames);
  add_roberta_head(shape, tensors, EncoderActivation::kTanh);
  return shape;
}

}  // namespace braid::model
