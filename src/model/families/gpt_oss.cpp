// gpt-oss (OpenAI 2025): a sink beside the scores of each head, windows in every second layer, biases everywhere, and experts whose gates and
// ups are cut. Folders have their rows in turns, as MXFP4 or, transposed, as floats.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/row_encoding.h"

#include <cstring>
#include <fmt/format.h>

namespace braid::model {
namespace {

constexpr float kLimit = 7.0F;

ModelShape describe_gpt_oss(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model, 128, 2);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  model.rotary.front().yarn_whole = keys.flag("rope.scaling.yarn_truncate", false);
  add_experts(keys, model, {.scoring = RouterShape::Scoring::kSoftmaxOfChosen});
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerShape& layer = model.layers[i];
    layer.feed_forward_norm.name = layer_tensor(static_cast<std::int32_t>(i), "post_attention_norm");
    layer.attention.sinks = layer_tensor(static_cast<std::int32_t>(i), "attn_sinks");
    if (!layer.experts) continue;
    layer.experts->router.linear.bias = Presence::kRequired;
    FeedForwardShape& each = layer.experts->each;
    each.activation = Activation::kClampedSwish;
    each.limit = static_cast<float>(keys.number("expert_swiglu_limit", kLimit, 1e-3, 1e6));
    each.gate.bias = each.up.bias = each.down.bias = Presence::kRequired;
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kGptOssNames[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias"},
    {"mlp.experts.down_proj", "ffn_down_exps.weight"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
};

// Experts of [inputs, outputs] each, or all their rows in one matrix.
void lay_out(FolderReader& in, std::string_view part, std::int64_t experts) {
  for (const std::string& name : in.of_part(part)) {
    if (!name.ends_with(".weight")) continue;
    files::GgufTensor tensor = std::move(*in.extract(name));
    if (!tensor.coded) {
      in.put_transposed(std::move(tensor));
    } else if (tensor.shape[1] % experts == 0) {
      tensor.shape = {tensor.shape[0], tensor.shape[1] / experts, experts};
      in.put(std::move(tensor));
    }
  }
}

// Biases [experts, 2 * width], a gate's and an up's in turns.
void split_biases(FolderReader& in) {
  for (const std::string& name : in.of_part("ffn_gate_up_exps")) {
    if (!name.ends_with(".bias")) continue;
    const files::GgufTensor whole = std::move(*in.extract(name));
    if (whole.shape.size() != 2 || whole.shape[0] % 2 != 0 || !is_sound(whole))
      return in.config.fail(ErrorCode::kBadFile, fmt::format("the tensor {} is not the biases of gates and ups", name));
    std::vector<float> values(static_cast<std::size_t>(whole.shape[0]));
    std::vector<double> halves[2];
    for (std::int64_t expert = 0; expert < whole.shape[1]; ++expert) {
      read_row(whole, expert, whole.shape[0], values.data());
      for (std::size_t i = 0; i < values.size(); ++i) halves[i % 2].push_back(static_cast<double>(values[i]));
    }
    const std::string layer = name.substr(0, name.rfind("ffn_"));
    in.add_table(layer + "ffn_gate_exps.bias", halves[0], whole.shape[1]);
    in.add_table(layer + "ffn_up_exps.bias", halves[1], whole.shape[1]);
  }
}

void translate_gpt_oss(FolderReader& in) {
  const FolderSize size = translate_decoder(in, kGptOssNames);
  if (in.config.error) return;
  translate_expert_keys(in);
  const std::int64_t experts = in.config.count({"num_local_experts", "num_experts"}, std::nullopt, 1, kMaxDimension);
  in.set("expert_feed_forward_length", static_cast<std::uint64_t>(in.config.count({"intermediate_size"}, std::nullopt, 1, kMaxDimension)));
  in.set("expert_swiglu_limit", in.config.number({"swiglu_limit"}, static_cast<double>(kLimit), 1e-3, 1e6));
  if (in.config.error) return;
  lay_out(in, "ffn_gate_up_exps", experts);
  lay_out(in, "ffn_down_exps", experts);
  split_biases(in);
  split_experts(in, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps", true);
  drop_later_layers(in, size);
}

}  // namespace

const Family kGptOss = {"gpt-oss", describe_gpt_oss, {"gpt_oss"}, translate_gpt_oss};

}  // namespace braid::model
