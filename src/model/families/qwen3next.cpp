// Qwen3-Next and Qwen 3.5 (Alibaba 2025, 2026): the gated delta rule in most layers, attention whose findings count by a gate in the others.
#include "model/deterministic_math.h"
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/families/picture_sections.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::uint64_t kMostDeltaTaps = 64;

// What all layers with the delta rule have in common.
DeltaRuleShape read_delta_sizes(GgufKeys& keys) {
  DeltaRuleShape shape;
  shape.heads = keys.size("ssm.time_step_rank", std::nullopt, kMaxHeads);
  shape.key_heads = keys.size("ssm.group_count", std::nullopt, kMaxHeads);
  shape.key_dim = keys.size("ssm.state_size", std::nullopt, kMaxHeadDim);
  const std::int32_t inner = keys.size("ssm.inner_size", std::nullopt);
  shape.value_dim = inner / shape.heads;
  shape.taps = keys.size("ssm.conv_kernel", std::nullopt, kMostDeltaTaps);
  if (!keys.error && (inner % shape.heads != 0 || shape.heads % shape.key_heads != 0 || shape.taps < 2))
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {} for {} heads in {} groups, and {} is {}", keys.full("ssm.inner_size"), inner,
                                               shape.heads, shape.key_heads, keys.full("ssm.conv_kernel"), shape.taps));
  return shape;
}

DeltaRuleShape delta_layer(GgufKeys& keys, DeltaRuleShape shape, std::int32_t index, const ModelShape& model) {
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(index, part), .inputs = inputs, .outputs = outputs};
  };
  shape.input = linear("attn_qkv", model.embedding, shape.convolved());
  shape.gate = linear("attn_gate", model.embedding, shape.inner());
  shape.beta = linear("ssm_beta", model.embedding, shape.heads);
  shape.decay = linear("ssm_alpha", model.embedding, shape.heads);
  if (keys.file().tensor(layer_tensor(index, "ssm_ba.weight")) != nullptr) {  // of each group its betas, then its decays
    shape.beta.name = shape.decay.name = layer_tensor(index, "ssm_ba");
    shape.beta.stored_outputs = shape.decay.stored_outputs = 2 * std::int64_t{shape.heads};
    shape.beta.run = shape.decay.run = shape.decay.first_output = shape.heads / shape.key_heads;
    shape.beta.period = shape.decay.period = 2 * shape.beta.run;
  }
  shape.beta.exact = shape.decay.exact = true;
  shape.kernel = layer_tensor(index, "ssm_conv1d");
  shape.step = layer_tensor(index, "ssm_dt");
  shape.rate = layer_tensor(index, "ssm_a");
  shape.norm = {.kind = NormShape::Kind::kRms,
                .name = layer_tensor(index, "ssm_norm"),
                .width = shape.value_dim,
                .epsilon = model.output.norm.epsilon};
  shape.output = linear("ssm_out", shape.inner(), model.embedding);
  return shape;
}

// The query's product has for each head the query, then the gate.
void add_gate(AttentionShape& attention) {
  attention.gate = attention.query;
  for (LinearShape* part : {&attention.query, &attention.gate}) {
    part->stored_outputs = 2 * attention.query_width();
    part->run = attention.head_dim;
    part->period = 2 * std::int64_t{attention.head_dim};
  }
  attention.gate.first_output = attention.head_dim;
}

// tiled: values of heads lie so that all key heads come in turns.
ModelShape describe_delta(GgufKeys& keys, bool tiled) {
  ModelShape model = rms_decoder(keys);
  add_query_norms(model, NormShape::Kind::kRms);
  DeltaRuleShape sizes = read_delta_sizes(keys);
  sizes.tiled = tiled;
  bool attends = false;
  for (std::size_t i = 0; i < model.layers.size() && !keys.error; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    LayerShape& layer = model.layers[i];
    layer.feed_forward_norm.name = layer_tensor(index, "post_attention_norm");
    if (keys.file().tensor(layer_tensor(index, "ssm_conv1d.weight")) != nullptr) {
      layer.delta = delta_layer(keys, sizes, index, model);
    } else {
      add_gate(layer.attention);
      attends = true;
    }
  }
  if (!attends) keys.fail(ErrorCode::kUnsupported, "no layer has attention, which this build cannot compute");
  return model;
}

// Files of before images were read lack the sections, which change nothing for texts.
ModelShape describe_qwen35_layers(GgufKeys& keys) {
  ModelShape model = describe_delta(keys, true);
  if (keys.has("rope.dimension_sections")) read_picture_sections(keys, model, {11, 11, 10}, true);
  return model;
}

ModelShape describe_qwen35(GgufKeys& keys) {
  ModelShape model = describe_qwen35_layers(keys);
  take_prediction_layers(keys, model);
  return model;
}

ModelShape describe_qwen35_moe(GgufKeys& keys) {
  ModelShape model = describe_qwen35_layers(keys);
  add_experts(keys, model, {.normalised = true});
  take_prediction_layers(keys, model);
  return model;
}

ModelShape describe_qwen3next(GgufKeys& keys) {
  ModelShape model = describe_delta(keys, false);
  add_experts(keys, model, {.normalised = true});
  take_prediction_layers(keys, model);
  return model;
}

// of tensors in folders
using DeltaName = std::pair<std::string_view, std::string_view>;
constexpr std::array kDeltaNames = {
    DeltaName{"post_attention_layernorm", "post_attention_norm"},
    DeltaName{"linear_attn.in_proj_qkv", "attn_qkv"},
    DeltaName{"linear_attn.in_proj_qkvz", "attn_qkvz"},
    DeltaName{"linear_attn.in_proj_z", "attn_gate"},
    DeltaName{"linear_attn.in_proj_b", "ssm_beta"},
    DeltaName{"linear_attn.in_proj_a", "ssm_alpha"},
    DeltaName{"linear_attn.in_proj_ba", "ssm_ba"},
    DeltaName{"linear_attn.conv1d", "ssm_conv1d"},
    DeltaName{"linear_attn.dt_bias", "ssm_dt.bias"},
    DeltaName{"linear_attn.A_log", "ssm_a"},
    DeltaName{"linear_attn.norm", "ssm_norm"},
    DeltaName{"linear_attn.out_proj", "ssm_out"},
    DeltaName{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    DeltaName{"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    DeltaName{"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    DeltaName{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    DeltaName{"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    DeltaName{"mlp.experts.down_proj", "ffn_down_exps.weight"},
};

struct DeltaSize {
  FolderSize decoder;
  std::int32_t heads = 0;
  std::int32_t key_heads = 0;
  std::int32_t key_dim = 0;
  std::int32_t value_dim = 0;

  std::int32_t keys() const { return key_heads * key_dim; }
  std::int32_t group() const { return heads / key_heads; }
};

void set_sections(FolderReader& in) {
  std::vector<std::uint64_t> sections = {11, 11, 10};
  if (auto rope = in.config.part("rope_parameters"))
    if (const auto given = rope->numbers("mrope_section", 3); !given.empty())
      std::ranges::transform(given, sections.begin(), [](double size) { return static_cast<std::uint64_t>(std::max(0.0, size)); });
  sections.push_back(0);
  in.set("rope.dimension_sections", files::GgufArray{std::move(sections)});
}

// What predicts tokens further ahead, as other families have it: the layer behind the others. All of it goes where something is missing.
void move_prediction(FolderReader& in) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"mtp.fc.", "eh_proj."},
                                                                      {"mtp.pre_fc_norm_embedding.", "enorm."},
                                                                      {"mtp.pre_fc_norm_hidden.", "hnorm."},
                                                                      {"mtp.norm.", "shared_head.norm."},
                                                                      {"mtp.layers.0.", ""}};
  const std::int64_t layers = in.config.count({"num_hidden_layers"}, 1, 1, kMaxLayers);
  const auto is_whole = [&](const auto& part) { return part.second.empty() || in.has(fmt::format("{}weight", part.first)); };
  std::vector<std::string> names;
  in.remove_if([&](std::string_view name) {
    if (name.starts_with("mtp.")) names.emplace_back(name);
    return false;
  });
  const bool all = std::ranges::all_of(kParts, is_whole);
  for (const std::string& name : names) {
    files::GgufTensor tensor = std::move(*in.extract(name));
    const auto part = std::ranges::find_if(kParts, [&](const auto& one) { return name.starts_with(one.first); });
    if (!all || part == std::end(kParts)) continue;
    tensor.name = fmt::format("model.layers.{}.{}{}", layers, part->second, name.substr(part->first.size()));
    in.put(std::move(tensor));
  }
}

DeltaSize translate_delta(FolderReader& in) {
  require_activation(in, {"silu"});
  move_prediction(in);
  DeltaSize size{.decoder = translate_decoder(in, kDeltaNames, 0.25)};
  place_prediction_layer(in, size.decoder);
  const auto count = [&](std::string_view key, std::string_view name, std::int64_t most) {
    const std::int64_t value = in.config.count({name}, std::nullopt, 1, most);
    if (!key.empty()) in.set(key, static_cast<std::uint64_t>(value));
    return static_cast<std::int32_t>(value);
  };
  size.heads = count("ssm.time_step_rank", "linear_num_value_heads", kMaxHeads);
  size.key_heads = count("ssm.group_count", "linear_num_key_heads", kMaxHeads);
  size.key_dim = count("ssm.state_size", "linear_key_head_dim", kMaxHeadDim);
  size.value_dim = count("", "linear_value_head_dim", kMaxHeadDim);
  count("ssm.conv_kernel", "linear_conv_kernel_dim", kMostDeltaTaps);
  if (!in.config.error && (size.heads % size.key_heads != 0 ||
                           std::max(size.heads * std::int64_t{size.value_dim}, size.key_heads * std::int64_t{size.key_dim}) > (1 << 24)))
    in.config.fail(ErrorCode::kBadFile, fmt::format("{} heads of {} values and {} of {} queries do not fit together", size.heads,
                                                    size.value_dim, size.key_heads, size.key_dim));
  if (in.config.error) return size;
  in.set("ssm.inner_size", static_cast<std::uint64_t>(std::int64_t{size.heads} * size.value_dim));
  in.squeeze("ssm_conv1d");
  std::vector<bool> recurrent;
  for (std::int32_t i = 0; i < size.decoder.layers; ++i) recurrent.push_back(in.rows(layer_tensor(i, "ssm_conv1d.weight")) > 0);
  in.set("attention.recurrent_layers", files::GgufArray{std::move(recurrent)});
  for (const std::string_view norm : {".attn_norm.weight", ".post_attention_norm.weight", ".attn_q_norm.weight", ".attn_k_norm.weight"})
    in.add_to_vectors(norm, 1.0F);
  for (const std::string_view norm : {"output_norm.weight", ".enorm.weight", ".hnorm.weight", ".shared_head_norm.weight"})
    in.add_to_vectors(norm, 1.0F);
  return size;
}

// The logarithm of how fast, of each head in its new order.
void translate_rates(FolderReader& in, const DeltaSize& size, const RowOrder& heads) {
  for (std::int32_t i = 0; i < size.decoder.layers; ++i) {
    const std::string name = layer_tensor(i, "ssm_a");
    const std::vector<float> logarithms = in.values(name);
    if (logarithms.size() != heads.size()) continue;  // refused later
    std::vector<double> rates;
    for (const std::int32_t head : heads) rates.push_back(-fixed_exp(static_cast<double>(logarithms[static_cast<std::size_t>(head)])));
    in.add_vector(name, rates);
  }
}

// Rows of so many `values` for each head, after `before` others.
RowOrder rows_of_heads(const RowOrder& heads, std::int32_t values, std::int32_t before = 0) {
  RowOrder order = consecutive_rows(0, before);
  for (const std::int32_t head : heads)
    for (std::int32_t i = 0; i < values; ++i) order.push_back(before + head * values + i);
  return order;
}

// Heads of one group lie together in folders, and as far apart as there are groups in files.
void tile_heads(FolderReader& in, const DeltaSize& size) {
  RowOrder heads;
  for (std::int32_t i = 0; i < size.heads; ++i) heads.push_back(i % size.key_heads * size.group() + i / size.key_heads);
  translate_rates(in, size, heads);
  if (size.group() == 1) return;
  for (const std::string_view part : {"attn_qkv", "ssm_conv1d"}) in.reorder(part, rows_of_heads(heads, size.value_dim, 2 * size.keys()));
  in.reorder("attn_gate", rows_of_heads(heads, size.value_dim));
  for (const std::string_view part : {"ssm_beta", "ssm_alpha", "ssm_dt"}) in.reorder(part, heads);
  in.reorder_columns("ssm_out", rows_of_heads(heads, size.value_dim));
}

void translate_qwen35(FolderReader& in) {
  const DeltaSize size = translate_delta(in);
  if (in.config.error) return;
  set_sections(in);
  tile_heads(in, size);
}

void translate_qwen_experts(FolderReader& in, const DeltaSize& size) {
  translate_expert_keys(in);
  in.set("expert_shared_feed_forward_length",
         static_cast<std::uint64_t>(in.config.count({"shared_expert_intermediate_size"}, 0, 0, kMaxDimension)));
  translate_router(in, true);
  join_experts(in, size.decoder);
  split_experts(in, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps");
  drop_dimension(in, "ffn_gate_inp_shexp");
}

void translate_qwen35_moe(FolderReader& in) {
  const DeltaSize size = translate_delta(in);
  if (in.config.error) return;
  set_sections(in);
  tile_heads(in, size);
  translate_qwen_experts(in, size);
}

// Of each group of heads its queries, keys, values and gates.
void translate_qwen3next(FolderReader& in) {
  const DeltaSize size = translate_delta(in);
  if (in.config.error) return;
  const std::int32_t values = size.group() * size.value_dim;
  const std::int32_t period = 2 * size.key_dim + 2 * values;
  RowOrder joined;
  RowOrder gate;
  const auto add = [&](RowOrder& order, std::int32_t first, std::int32_t count) {
    for (std::int32_t group = 0; group < size.key_heads; ++group)
      for (std::int32_t i = 0; i < count; ++i) order.push_back(group * period + first + i);
  };
  add(joined, 0, size.key_dim);
  add(joined, size.key_dim, size.key_dim);
  add(joined, 2 * size.key_dim, values);
  add(gate, 2 * size.key_dim + values, values);
  in.split("attn_qkvz", {{"attn_qkv", joined}, {"attn_gate", gate}});
  translate_rates(in, size, consecutive_rows(0, size.heads));
  translate_qwen_experts(in, size);
}

}  // namespace

const Family kQwen35 = {"qwen35", describe_qwen35, {"qwen3_5_text", "qwen3_5"}, translate_qwen35};
const Family kQwen35Moe = {"qwen35moe", describe_qwen35_moe, {"qwen3_5_moe_text", "qwen3_5_moe"}, translate_qwen35_moe};
const Family kQwen3Next = {"qwen3next", describe_qwen3next, {"qwen3_next"}, translate_qwen3next};

}  // namespace braid::model
