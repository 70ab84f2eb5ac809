#include "model/encoders/encoder_families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <simdjson.h>
#include <utility>

namespace braid::model {
namespace {

using Family = EncoderShape (*)(FolderConfig& config, const EncoderTensors& tensors);

constexpr std::array kFamilies = std::to_array<std::pair<std::string_view, Family>>({
    {"bert", bert_shape},
    {"electra", bert_shape},
    {"roberta", roberta_shape},
    {"xlm-roberta", roberta_shape},
    {"camembert", roberta_shape},
    {"distilbert", distilbert_shape},
    {"mpnet", mpnet_shape},
    {"nomic_bert", nomic_bert_shape},
    {"jina_embeddings_v3", nomic_bert_shape},
    {"new", gte_shape},
    {"gte", gte_shape},
    {"modernbert", modernbert_shape},
    {"gemma3_text", gemma_embedding_shape},
});

const Family* family_of(std::string_view model_type) {
  const auto found = std::ranges::find(kFamilies, model_type, &std::pair<std::string_view, Family>::first);
  return found != kFamilies.end() ? &found->second : nullptr;
}

}  // namespace

bool describes_encoder(std::string_view config) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view type;
  if (parser.parse(config.data(), config.size()).get(root) != simdjson::SUCCESS || root["model_type"].get(type) != simdjson::SUCCESS)
    return false;
  if (type != "gemma3_text") return family_of(type) != nullptr;
  bool both = false;
  return root["use_bidirectional_attention"].get(both) == simdjson::SUCCESS && both;
}

Result<EncoderShape> read_encoder_folder(const files::HfFolder& folder) {
  FolderConfig config(folder.config(), folder.path() + "/config.json");
  if (config.error) return *config.error;
  const FolderTensors tensors(folder.tensors());
  EncoderShape shape = (*family_of(config.model_type()))(config, tensors);
  if (!config.error && shape.context < 1) config.fail(ErrorCode::kBadFile, "leaves no position for a token");
  if (!config.error && shape.head_dim % 2 != 0) config.fail(ErrorCode::kUnsupported, "heads have an odd width");
  if (config.error) return *config.error;
  return shape;
}

EncoderShape common_shape(FolderConfig& config) {
  EncoderShape shape;
  shape.family = config.model_type();
  shape.vocabulary = config.count({"vocab_size"}, std::nullopt, 1, 1 << 24);
  shape.width = config.count({"hidden_size", "dim", "n_embd"}, std::nullopt, 1, 1 << 20);
  shape.embedded = shape.width;
  shape.heads = static_cast<std::int32_t>(config.count({"num_attention_heads", "n_heads", "n_head"}, std::nullopt, 1, 4096));
  shape.kv_heads = shape.heads;
  if (shape.heads > 0 && shape.width % shape.heads != 0 && !config.has({"head_dim"}))
    config.fail(ErrorCode::kBadFile, fmt::format("a width of {} is no multiple of {} heads", shape.width, shape.heads));
  shape.head_dim = static_cast<std::int32_t>(shape.width / std::max(1, shape.heads));
  shape.context = static_cast<std::int32_t>(config.count({"max_position_embeddings", "n_positions"}, 512, 1, 1 << 24));
  shape.epsilon = config.number({"layer_norm_eps", "layer_norm_epsilon", "norm_eps", "rms_norm_eps"}, 1e-12, 0.0, 1.0);
  shape.activation = activation_of(config, {"hidden_act"}, "gelu");
  return shape;
}

EncoderActivation activation_of(FolderConfig& config, FolderConfig::Names names, std::string_view fallback) {
  constexpr std::array kNames = std::to_array<std::pair<std::string_view, EncoderActivation>>({
      {"gelu", EncoderActivation::kGelu},
      {"gelu_python", EncoderActivation::kGelu},
      {"gelu_new", EncoderActivation::kGeluTanh},
      {"gelu_fast", EncoderActivation::kGeluTanh},
      {"gelu_pytorch_tanh", EncoderActivation::kGeluTanh},
      {"quick_gelu", EncoderActivation::kGeluQuick},
      {"relu", EncoderActivation::kRelu},
      {"silu", EncoderActivation::kSilu},
      {"swish", EncoderActivation::kSilu},
      {"tanh", EncoderActivation::kTanh},
  });
  const std::string name = config.text(names, fallback);
  const auto found = std::ranges::find(kNames, name, &std::pair<std::string_view, EncoderActivation>::first);
  if (found != kNames.end()) return found->second;
  config.fail(ErrorCode::kUnsupported, fmt::format("'{}' is '{}', which is not known", *names.begin(), name));
  return EncoderActivation::kNone;
}

std::string prefix_of(const EncoderTensors& tensors, std::string_view prefix, std::string_view name) {
  return tensors.has(fmt::format("{}{}", prefix, name)) ? std::string(prefix) : std::string();
}

EncoderLinear linear_of(const std::string& name, std::int64_t outputs, std::int64_t inputs, std::int64_t first) {
  return {name + ".weight", name + ".bias", outputs, inputs, first};
}

std::int64_t classes_of(const EncoderTensor& out) { return out.shape.size() == 2 ? out.shape.front() : 0; }

EncoderNorm norm_of(const std::string& name) { return {name + ".weight", name + ".bias"}; }

EncoderNorm rms_norm_of(const std::string& name, float plus) { return {name + ".weight", {}, true, plus}; }

}  // namespace braid::model
