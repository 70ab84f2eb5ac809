// After llama_tensor_get_type of llama.cpp's llama-quant.cpp, for the types that this build writes.
#include "model/quantization_mix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>

namespace braid::model {
namespace {

using kernels::WeightType;

constexpr std::array kMixes = {
    QuantizationMix{"f32", WeightType::kF32, 0},        QuantizationMix{"f16", WeightType::kF16, 1},
    QuantizationMix{"bf16", WeightType::kBF16, 32},     QuantizationMix{"q8_0", WeightType::kQ8_0, 7},
    QuantizationMix{"q6_k", WeightType::kQ6_K, 18},     QuantizationMix{"q5_k_m", WeightType::kQ5_K, 17},
    QuantizationMix{"q5_k_s", WeightType::kQ5_K, 16},   QuantizationMix{"q5_1", WeightType::kQ5_1, 9},
    QuantizationMix{"q5_0", WeightType::kQ5_0, 8},      QuantizationMix{"q4_k_m", WeightType::kQ4_K, 15},
    QuantizationMix{"q4_k_s", WeightType::kQ4_K, 14},   QuantizationMix{"iq4_nl", WeightType::kIQ4_NL, 25},
    QuantizationMix{"iq4_xs", WeightType::kIQ4_XS, 30}, QuantizationMix{"q4_1", WeightType::kQ4_1, 3},
    QuantizationMix{"q4_0", WeightType::kQ4_0, 2},      QuantizationMix{"q3_k_l", WeightType::kQ3_K, 13},
    QuantizationMix{"q3_k_m", WeightType::kQ3_K, 12},   QuantizationMix{"q3_k_s", WeightType::kQ3_K, 11},
    QuantizationMix{"q2_k", WeightType::kQ2_K, 10},
};

// Tables and small products that cost little and matter much.
constexpr std::array<std::string_view, 14> kKept = {
    "_norm.weight",          "ffn_gate_inp.weight",       "altup",      "laurel",     "per_layer_model_proj", "ssm_conv1d",
    "shortconv.conv.weight", "time_mix_first.weight",     "time_mix_w", "time_mix_v", "time_mix_a",           "time_mix_g",
    "time_mix_decay_w",      "time_mix_lerp_fused.weight"};

bool is_quantised(const files::GgufTensor& tensor) {
  const auto dimensions = std::ranges::count_if(tensor.shape, [](std::int64_t extent) { return extent > 1; });
  const std::string_view name = tensor.name;
  if (dimensions < 2 || tensor.shape.size() < 2 || !name.ends_with("weight") || name == "position_embd.weight" ||
      name == "token_types.weight")
    return false;
  return std::ranges::none_of(kKept, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

int layer_of(std::string_view name) {
  int layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

// Which layers get more bits: the first and last eighth, and every third between.
bool more_bits(int layer, int layers) { return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2; }

std::string architecture_of(const files::GgufFile& file) {
  const auto name = file.string_or("general.architecture", "");
  return name ? *name : std::string();
}

class Chooser {
 public:
  Chooser(const files::GgufFile& file, const QuantizationMix& mix, bool has_importance)
      : mix_(mix), has_importance_(has_importance), architecture_(architecture_of(file)), layers_(number(file, "block_count", 0)),
        experts_(number(file, "expert_count", 0)), tied_(file.tensor("output.weight") == nullptr) {
    const int heads = number(file, "attention.head_count", 1);
    const int kv_heads = number(file, "attention.head_count_kv", heads);
    shared_ = kv_heads > 0 ? heads / kv_heads : 1;
    for (const files::GgufTensor& tensor : file.tensors()) values_ += is_value(tensor.name) ? 1 : 0;
  }

  // In the order of layers: some choices count.
  WeightType choose(const files::GgufTensor& tensor) {
    const std::string_view name = tensor.name;
    const WeightType own = mix_.type;
    if (name == "output.weight" || (tied_ && name == "token_embd.weight")) return output_type(tensor);
    if (name == "token_embd.weight") return own;
    if (is_value(name)) return value_type();
    if (name.ends_with("attn_k.weight")) return experts_ == 8 ? WeightType::kQ8_0 : own;
    if (name.find("ffn_down") != std::string_view::npos) return down_type(name);
    if (name.ends_with("attn_output.weight")) return attention_output_type();
    return own;
  }

 private:
  int number(const files::GgufFile& file, std::string_view key, int fallback) const {
    const auto value = file.unsigned_or(architecture_ + "." + std::string(key), static_cast<std::uint64_t>(fallback));
    return value ? static_cast<int>(std::min<std::uint64_t>(*value, 1 << 20)) : fallback;
  }
  static bool is_value(std::string_view name) {
    return name.ends_with("attn_v.weight") || name.ends_with("attn_qkv.weight") || name.ends_with("attn_kv_b.weight");
  }
  bool is(std::string_view name) const { return mix_.name == name; }
  bool is_falcon() const { return architecture_ == "falcon"; }

  WeightType output_type(const files::GgufTensor& tensor) const {
    if (!is_block_type(mix_.type)) return mix_.type;
    if (is_falcon() || tensor.shape.front() % kernels::weight_format(mix_.type)->block_values != 0) return WeightType::kQ8_0;
    return mix_.type == WeightType::kQ8_0 ? mix_.type : WeightType::kQ6_K;
  }
  static bool is_block_type(WeightType type) { return kernels::weight_format(type)->block_values > 1; }

  WeightType value_type() {
    const int index = seen_values_++;
    WeightType type = mix_.type;
    if (is("q2_k")) type = shared_ >= 4 ? WeightType::kQ4_K : WeightType::kQ3_K;
    if (is("q3_k_m")) type = index < 2 ? WeightType::kQ5_K : WeightType::kQ4_K;
    if (is("q3_k_l")) type = WeightType::kQ5_K;
    if ((is("iq4_nl") || is("iq4_xs")) && shared_ >= 4) type = WeightType::kQ5_K;
    if ((is("q4_k_m") || is("q5_k_m")) && more_bits(index, values_)) type = WeightType::kQ6_K;
    if (is("q4_k_s") && index < 4) type = WeightType::kQ5_K;
    const bool large = layers_ == 80 && shared_ > 1;  // where values are an eighth of queries
    if (large && (type == WeightType::kQ3_K || type == WeightType::kQ4_K)) type = WeightType::kQ5_K;
    if (experts_ == 8 && is_block_type(mix_.type)) type = WeightType::kQ8_0;
    return type;
  }

  WeightType down_type(std::string_view name) {
    const int layer = experts_ > 1 ? layer_of(name) : seen_downs_++;
    const bool first = layer < layers_ / 8;
    if (is("q2_k")) return WeightType::kQ3_K;
    if (is("q3_k_m")) {
      if (layer < layers_ / 16) return WeightType::kQ5_K;
      return !is_falcon() || more_bits(layer, layers_) ? WeightType::kQ4_K : WeightType::kQ3_K;
    }
    if (is("q3_k_l")) return is_falcon() ? WeightType::kQ4_K : WeightType::kQ5_K;
    if (is("q4_k_m") && is_falcon()) {
      if (layer < layers_ / 16) return WeightType::kQ6_K;
      return more_bits(layer, layers_) ? WeightType::kQ5_K : WeightType::kQ4_K;
    }
    if ((is("q4_k_m") || is("q5_k_m")) && more_bits(layer, layers_)) return WeightType::kQ6_K;
    if ((is("iq4_nl") || is("iq4_xs")) && first && !has_importance_) return WeightType::kQ5_K;
    if (is("q4_k_s") && !is_falcon() && first) return WeightType::kQ5_K;
    if (is("q4_0") && has_importance_ && first) return WeightType::kQ4_1;
    if (is("q5_0") && has_importance_ && first) return WeightType::kQ5_1;
    return mix_.type;
  }

  WeightType attention_output_type() const {
    if (is_falcon()) return is("q3_k_l") ? WeightType::kQ4_K : mix_.type;
    if (experts_ == 8) {
      const bool small = is("q2_k") || is("q3_k_s") || is("q3_k_m") || is("iq4_nl") || is("iq4_xs") || is("q4_k_s") || is("q4_k_m");
      return small ? WeightType::kQ5_K : mix_.type;
    }
    if (is("q2_k")) return WeightType::kQ3_K;
    if (is("q3_k_m")) return WeightType::kQ4_K;
    return is("q3_k_l") ? WeightType::kQ5_K : mix_.type;
  }

  const QuantizationMix& mix_;
  const bool has_importance_;
  const std::string architecture_;
  const int layers_;
  const int experts_;
  const bool tied_;
  int shared_ = 1;  // query heads for each key head
  int values_ = 0;  // matrices of values
  int seen_values_ = 0;
  int seen_downs_ = 0;
};

// What a type of 256 becomes where it does not divide a row.
WeightType fitting(WeightType type, std::int64_t columns) {
  const auto fits = [&](WeightType other) { return columns % kernels::weight_format(other)->block_values == 0; };
  if (fits(type)) return type;
  WeightType smaller = WeightType::kF16;
  if (type == WeightType::kQ2_K || type == WeightType::kQ3_K) smaller = WeightType::kQ4_0;
  if (type == WeightType::kQ4_K) smaller = WeightType::kQ5_0;
  if (type == WeightType::kQ5_K) smaller = WeightType::kQ5_1;
  if (type == WeightType::kQ6_K) smaller = WeightType::kQ8_0;
  if (type == WeightType::kIQ4_XS) smaller = WeightType::kIQ4_NL;
  return fits(smaller) ? smaller : WeightType::kF16;
}

}  // namespace

std::span<const QuantizationMix> quantization_mixes() { return kMixes; }

const QuantizationMix* quantization_mix(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [alias, full] : {std::pair{"q3_k", "q3_k_m"}, {"q4_k", "q4_k_m"}, {"q5_k", "q5_k_m"}})
    if (lower == alias) lower = full;
  const auto* found = std::ranges::find(kMixes, lower, &QuantizationMix::name);
  return found == kMixes.end() ? nullptr : found;
}

std::vector<WeightType> types_of_mix(const files::GgufFile& file, const QuantizationMix& mix, bool pure, bool has_importance) {
  const auto& tensors = file.tensors();
  std::vector<WeightType> types(tensors.size());
  std::vector<std::size_t> by_layer(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) by_layer[i] = i;
  std::ranges::stable_sort(by_layer, [&](std::size_t a, std::size_t b) {
    const int layer_a = layer_of(tensors[a].name);
    const int layer_b = layer_of(tensors[b].name);
    return layer_a != layer_b ? layer_a < layer_b : tensors[a].name < tensors[b].name;
  });
  Chooser chooser(file, mix, has_importance);
  for (const std::size_t i : by_layer) {
    const files::GgufTensor& tensor = tensors[i];
    types[i] = static_cast<WeightType>(tensor.type);
    if (!is_quantised(tensor)) continue;
    const bool plain = pure || kernels::weight_format(mix.type)->block_values == 1;
    types[i] = fitting(plain ? mix.type : chooser.choose(tensor), tensor.shape.front());
  }
  return types;
}

}  // namespace braid::model
