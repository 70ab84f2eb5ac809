#include "model/encoders/gguf_modules.h"

#include "model/encoders/encoder_families.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr std::array kOfLayers = std::to_array<Names>({
    {"attention.self.query", "attn_q"},
    {"attention.q_lin", "attn_q"},
    {"self_attn.q_proj", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.k_lin", "attn_k"},
    {"self_attn.k_proj", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.v_lin", "attn_v"},
    {"self_attn.v_proj", "attn_v"},
    {"attn.Wqkv", "attn_qkv"},
    {"mixer.Wqkv", "attn_qkv"},
    {"attention.output.dense", "attn_output"},
    {"attention.out_lin", "attn_output"},
    {"self_attn.o_proj", "attn_output"},
    {"attn.out_proj", "attn_output"},
    {"mixer.out_proj", "attn_output"},
    {"attn.Wo", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"sa_layer_norm", "attn_output_norm"},
    {"norm1", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"ffn.lin1", "ffn_up"},
    {"mlp.fc11", "ffn_up"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gated_layers", "ffn_up"},
    {"mlp.up_gated_layer", "ffn_up"},
    {"mlp.Wi", "ffn_up"},
    {"mlp.fc12", "ffn_gate"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.router.layer", "ffn_gate_inp"},
    {"output.dense", "ffn_down"},
    {"ffn.lin2", "ffn_down"},
    {"mlp.fc2", "ffn_down"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.wo", "ffn_down"},
    {"mlp.down_layer", "ffn_down"},
    {"mlp.Wo", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {"output_layer_norm", "layer_output_norm"},
    {"norm2", "layer_output_norm"},
});

constexpr std::array kOutside = std::to_array<Names>({
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"pooler.dense", "cls"},
    {"pre_classifier", "cls"},
    {"classifier.dense", "cls"},
    {"head.dense", "cls"},
    {"classifier.out_proj", "cls.output"},
    {"classifier", "cls.output"},
});

}  // namespace

std::optional<std::string> gguf_module(std::string_view module) {
  for (const std::string_view layers : {"layer.", "layers."}) {
    const std::size_t at = module.find(layers);
    if (at == std::string_view::npos || (at > 0 && module[at - 1] != '.')) continue;
    const std::string_view own = module.substr(at + layers.size());
    const std::size_t dot = own.find('.');
    if (dot == 0 || dot == std::string_view::npos ||
        !std::ranges::all_of(own.substr(0, dot), [](unsigned char c) { return std::isdigit(c) != 0; }))
      continue;
    const auto* const found = std::ranges::find(kOfLayers, own.substr(dot + 1), &Names::first);
    if (found == kOfLayers.end()) return std::nullopt;
    return fmt::format("blk.{}.{}", own.substr(0, dot), found->second);
  }
  for (const auto& [name, in_file] : kOutside)
    if (module == name || (module.ends_with(name) && module[module.size() - name.size() - 1] == '.')) return std::string(in_file);
  return std::nullopt;
}

std::optional<std::string> gguf_architecture(const EncoderShape& shape) {
  if (is_encoder_architecture(shape.family)) return shape.slopes ? "jina-bert-v2" : shape.family;
  const bool is_roberta = shape.family == "roberta" || shape.family == "xlm-roberta" || shape.family == "camembert";
  if (shape.family == "jina_embeddings_v3" || (is_roberta && !shape.rotary.empty())) return "jina-bert-v3";
  if (is_roberta || shape.family == "distilbert") return "bert";
  if (shape.family == "modernbert") return "modern-bert";
  if (shape.family == "gemma3_text") return "gemma-embedding";
  if (shape.family != "nomic_bert") return std::nullopt;
  const bool has_experts = std::ranges::any_of(shape.layers, [](const EncoderLayer& layer) { return layer.experts.count > 0; });
  return has_experts ? "nomic-bert-moe" : "nomic-bert";
}

}  // namespace braid::model
