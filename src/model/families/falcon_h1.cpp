// Falcon-H1 (TII 2025): attention and Mamba-2 side by side in every layer, both of the same normed input. Its many factors are in the
// weights of files.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"
#include "model/families/selective_layers.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

ModelShape describe_falcon_h1(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  const SelectiveStateShape sizes = read_selective_sizes(keys);
  for (std::size_t i = 0; i < model.layers.size() && !keys.error; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    LayerShape& layer = model.layers[i];
    layer.selective = selective_layer(keys, sizes, index, model);
    layer.attends_beside_state = true;
    layer.feed_forward_norm.bare = keys.file().tensor(layer.feed_forward_norm.name) != nullptr;  // as llama.cpp's converter writes it
  }
  return model;
}

// of tensors in folders
using FalconH1Name = std::pair<std::string_view, std::string_view>;
constexpr std::array kFalconH1Names = {
    FalconH1Name{"mamba.in_proj", "ssm_in"},
    FalconH1Name{"mamba.conv1d", "ssm_conv1d"},
    FalconH1Name{"mamba.dt_bias", "ssm_dt.bias"},
    FalconH1Name{"mamba.A_log", "ssm_a"},
    FalconH1Name{"mamba.D", "ssm_d"},
    FalconH1Name{"mamba.norm", "ssm_norm"},
    FalconH1Name{"mamba.out_proj", "ssm_out"},
    FalconH1Name{"feed_forward.gate_proj", "ffn_gate"},
    FalconH1Name{"feed_forward.up_proj", "ffn_up"},
    FalconH1Name{"feed_forward.down_proj", "ffn_down"},
    FalconH1Name{"pre_ff_layernorm", "ffn_norm"},
    FalconH1Name{"model.final_layernorm", "output_norm"},
};

// Of the rows of ssm_in: gates, x, B, C and steps.
std::vector<float> input_factors(FolderReader& in, const SelectiveSize& size, double all) {
  std::vector<double> parts = in.config.numbers("ssm_multipliers", 5);
  if (parts.empty()) parts.assign(5, 1.0);
  const std::int64_t shared = size.groups * size.state;
  const std::array<std::int64_t, 5> rows = {size.inner(), size.inner(), shared, shared, size.heads};
  std::vector<float> factors;
  for (std::size_t part = 0; part < rows.size(); ++part)
    factors.insert(factors.end(), static_cast<std::size_t>(rows[part]), static_cast<float>(all * parts[part]));
  return factors;
}

void multiply_whole(FolderReader& in, const std::string& from, const std::string& to, double factor) {
  auto tensor = in.extract(from);
  if (!tensor) return;
  files::GgufTensor scaled = *tensor;
  scaled.name = to;
  scaled.factors = {static_cast<float>(factor)};
  if (from != to) in.put(std::move(*tensor));
  in.put(std::move(scaled));
}

void translate_falcon_h1(FolderReader& in) {
  require_activation(in, {"silu"});
  for (const std::string_view key : {"attention_bias", "mlp_bias", "projectors_bias", "mamba_proj_bias"}) refuse_option(in, key);
  const FolderSize size = translate_decoder(in, kFalconH1Names);
  const bool normed = in.config.flag({"mamba_rms_norm"}, false);
  if (normed && in.config.flag({"mamba_norm_before_gate"}, true))
    in.config.fail(ErrorCode::kUnsupported, "mamba_norm_before_gate is set, which this build cannot compute");
  const SelectiveSize selective = translate_selective(in, size.layers, {}, true);
  if (in.config.error) return;
  for (std::int32_t i = 0; i < size.layers; ++i) {
    auto norm = in.extract(layer_tensor(i, "ffn_norm.weight"));
    if (!norm) continue;
    norm->name = layer_tensor(i, "ffn_norm");  // as llama.cpp's files have it
    in.put(std::move(*norm));
  }
  const auto factor = [&](std::string_view name) { return in.config.number({name}, 1.0, 1e-9, 1e9); };
  const auto multiply = [&](std::string_view part, double by) { in.multiply(part, {static_cast<float>(by)}); };
  const double into = factor("attention_in_multiplier");
  multiply("attn_q", into);
  multiply("attn_k", into * factor("key_multiplier"));
  multiply("attn_v", into);
  multiply("attn_output", factor("attention_out_multiplier"));
  in.multiply("ssm_in", input_factors(in, selective, factor("ssm_in_multiplier")));
  multiply("ssm_out", factor("ssm_out_multiplier"));
  std::vector<double> network = in.config.numbers("mlp_multipliers", 2);
  if (network.empty()) network.assign(2, 1.0);
  multiply("ffn_gate", network[0]);
  multiply("ffn_down", network[1]);
  multiply_whole(in, in.has("output.weight") ? "output.weight" : "token_embd.weight", "output.weight", factor("lm_head_multiplier"));
  multiply_whole(in, "token_embd.weight", "token_embd.weight", factor("embedding_multiplier"));
}

}  // namespace

const Family kFalconH1 = {"falcon-h1", describe_falcon_h1, {"falcon_h1"}, translate_falcon_h1};

}  // namespace braid::model
