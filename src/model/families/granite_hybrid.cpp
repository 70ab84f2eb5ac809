// Granite 4 (IBM 2025): Mamba-2, attention without positions in some layers, and Granite's scales.
#include "model/deterministic_math.h"
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"
#include "model/families/granite_scales.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::uint64_t kMostStateTaps = 64;

// What all layers with a state have in common.
SelectiveStateShape read_selective_sizes(GgufKeys& keys) {
  SelectiveStateShape shape;
  shape.heads = keys.size("ssm.time_step_rank", std::nullopt, kMaxHeads);
  const std::int32_t inner = keys.size("ssm.inner_size", std::nullopt);
  shape.head_dim = inner / shape.heads;
  shape.state = keys.size("ssm.state_size", std::nullopt, kMaxHeadDim);
  shape.groups = keys.size("ssm.group_count", 1);
  shape.taps = keys.size("ssm.conv_kernel", std::nullopt, kMostStateTaps);
  if (!keys.error && (inner % shape.heads != 0 || shape.taps < 2))
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {} for {} heads, and {} is {}", keys.full("ssm.inner_size"), inner, shape.heads,
                                               keys.full("ssm.conv_kernel"), shape.taps));
  if (!keys.error && shape.groups != 1)  // the norm's groups follow other rules in other files
    keys.fail(ErrorCode::kUnsupported, fmt::format("{} is {}, expected 1", keys.full("ssm.group_count"), shape.groups));
  return shape;
}

SelectiveStateShape selective_layer(SelectiveStateShape shape, std::int32_t index, const ModelShape& model) {
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(index, part), .inputs = inputs, .outputs = outputs, .bias = Presence::kOptional};
  };
  shape.input = linear("ssm_in", model.embedding, shape.inner() + shape.convolved() + shape.heads);
  shape.kernel = layer_tensor(index, "ssm_conv1d");
  shape.bias = Presence::kOptional;
  shape.step = layer_tensor(index, "ssm_dt");
  shape.decay = layer_tensor(index, "ssm_a");
  shape.skip = layer_tensor(index, "ssm_d");
  shape.norm = {.kind = NormShape::Kind::kRms,
                .name = layer_tensor(index, "ssm_norm"),
                .width = static_cast<std::int32_t>(shape.inner()),
                .epsilon = model.output.norm.epsilon};
  shape.output = linear("ssm_out", shape.inner(), model.embedding);
  return shape;
}

ModelShape describe_granite_hybrid(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  describe_granite_scales(keys, model);
  const bool rotates = keys.flag("rope.scaling.finetuned", false);
  std::optional<SelectiveStateShape> sizes;
  bool attends = false;
  for (std::size_t i = 0; i < model.layers.size() && !keys.error; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (!rotates) model.layers[i].attention.rotary = kNoRotary;
    if (keys.file().tensor(layer_tensor(index, "ssm_in.weight")) == nullptr) {
      attends = true;
      continue;
    }
    if (!sizes) sizes = read_selective_sizes(keys);
    model.layers[i].selective = selective_layer(*sizes, index, model);
  }
  if (!attends) keys.fail(ErrorCode::kUnsupported, "no layer has attention, which this build cannot compute");
  return model;
}

// of tensors in folders
using GraniteHybridName = std::pair<std::string_view, std::string_view>;
constexpr std::array kGraniteHybridNames = {
    GraniteHybridName{"mamba.in_proj", "ssm_in"},
    GraniteHybridName{"mamba.conv1d", "ssm_conv1d"},
    GraniteHybridName{"mamba.dt_bias", "ssm_dt.bias"},
    GraniteHybridName{"mamba.A_log", "ssm_a"},
    GraniteHybridName{"mamba.D", "ssm_d"},
    GraniteHybridName{"mamba.norm", "ssm_norm"},
    GraniteHybridName{"mamba.out_proj", "ssm_out"},
    GraniteHybridName{"shared_mlp.input_linear", "ffn_up"},
    GraniteHybridName{"shared_mlp.output_linear", "ffn_down"},
};

void translate_selective(FolderReader& in, const FolderSize& size) {
  const auto count = [&](std::string_view key, FolderConfig::Names names, std::optional<std::int64_t> fallback) {
    const std::int64_t value = in.config.count(names, fallback, 1, static_cast<std::int64_t>(kMaxDimension));
    in.set(key, static_cast<std::uint64_t>(value));
    return value;
  };
  const std::int64_t heads = count("ssm.time_step_rank", {"mamba_n_heads"}, std::nullopt);
  count("ssm.state_size", {"mamba_d_state"}, std::nullopt);
  count("ssm.group_count", {"mamba_n_groups"}, 1);
  count("ssm.conv_kernel", {"mamba_d_conv"}, 4);
  const std::int64_t expand = in.config.count({"mamba_expand"}, 2, 1, 64);
  in.set("ssm.inner_size", static_cast<std::uint64_t>(expand * size.embedding));
  if (!in.config.error && (expand * size.embedding) % heads != 0)
    in.config.fail(ErrorCode::kBadFile, fmt::format("mamba_n_heads is {}, expected a divisor of {}", heads, expand * size.embedding));
  in.squeeze("ssm_conv1d");
  FolderConfig probe = in.config;  // an upper limit that is no number in JSON is none
  const std::vector<double> limits = probe.numbers("time_step_limit", 2);
  if (!probe.error && !limits.empty() && (limits.front() > 0.0 || limits.back() < 1e30))
    in.config.fail(ErrorCode::kUnsupported, "time_step_limit is set, which this build cannot compute");
}

void translate_granite_hybrid(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kGraniteHybridNames);
  pair_rotated(in, size);
  translate_granite_scales(in);
  refuse_option(in, "num_local_experts");
  const auto width = in.config.count({"shared_intermediate_size"}, std::nullopt, 1, static_cast<std::int64_t>(kMaxDimension));
  in.set("feed_forward_length", static_cast<std::uint64_t>(width));
  in.set("rope.scaling.finetuned", in.config.text({"position_embedding_type"}, "nope") == "rope");
  if (in.config.error) return;
  const auto rows = static_cast<std::int32_t>(width);
  in.split("ffn_up", {{"ffn_gate", consecutive_rows(0, rows)}, {"ffn_up", consecutive_rows(rows, rows)}});
  std::vector<std::uint64_t> kv_heads;
  for (std::int32_t i = 0; i < size.layers; ++i) {
    const bool attends = in.rows(layer_tensor(i, "attn_k.weight")) > 0;
    kv_heads.push_back(attends ? static_cast<std::uint64_t>(size.kv_heads) : 0);
    if (attends) continue;
    std::vector<double> decay;  // the logarithm of how fast
    for (const float value : in.values(layer_tensor(i, "ssm_a"))) decay.push_back(-fixed_exp(static_cast<double>(value)));
    in.add_vector(layer_tensor(i, "ssm_a"), decay);
  }
  if (std::ranges::find(kv_heads, 0U) != kv_heads.end()) translate_selective(in, size);
  in.set("attention.head_count_kv", files::GgufArray{std::move(kv_heads)});
}

}  // namespace

const Family kGraniteHybrid = {"granitehybrid", describe_granite_hybrid, {"granitemoehybrid"}, translate_granite_hybrid};

}  // namespace braid::model
