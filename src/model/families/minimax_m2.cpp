// MiniMax-M2 (2025): norms over all queries and all keys, a part of each head rotates, and sigmoid scores with a correction.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_minimax_m2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  add_query_norms(model, NormShape::Kind::kRms, true);
  add_experts(keys, model, {.scoring = RouterShape::Scoring::kSigmoid, .normalised = true});
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kMiniMaxNames[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp"}, {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"}};

void translate_minimax_m2(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_sizes(in);
  const std::int64_t rotated = in.config.count({"rotary_dim"}, rotated_of(in, size), 2, size.head_dim);
  translate_rope(in, size, static_cast<std::int32_t>(rotated));
  in.name_tensors(kMiniMaxNames);
  translate_expert_keys(in, {"intermediate_size"});
  set_scoring(in, RouterShape::Scoring::kSigmoid);
  join_experts(in, size, {.module = "block_sparse_moe.experts", .gate = "w1", .up = "w3", .down = "w2"});
  drop_later_layers(in, size);
}

}  // namespace

const Family kMiniMaxM2 = {"minimax-m2", describe_minimax_m2, {"minimax_m2"}, translate_minimax_m2};

}  // namespace braid::model
