// InternLM 2 and 2.5 (2024): Llama whose queries, keys and values lie together by the keys' heads.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_internlm2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kInternLm2Names[] = {
    {"attention.wqkv", "attn_qkv"}, {"attention.wo", "attn_output"},        {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w3", "ffn_up"},  {"feed_forward.w2", "ffn_down"},        {"attention_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},       {"model.tok_embeddings", "token_embd"}, {"output", "output"}};

void translate_internlm2(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kInternLm2Names);
  if (in.config.error) return;
  const RowOrder all = ungrouped_rows(size.heads, size.kv_heads, size.head_dim);
  const auto from = [&](std::int32_t first, const RowOrder& order) {
    RowOrder rows;
    for (const std::int32_t row : order) rows.push_back(all[static_cast<std::size_t>(first + row)]);
    return rows;
  };
  const std::int32_t queries = size.heads * size.head_dim;
  const std::int32_t keys = size.kv_heads * size.head_dim;
  in.split("attn_qkv", {{"attn_q", from(0, paired_rows(size.heads, size.head_dim))},
                        {"attn_k", from(queries, paired_rows(size.kv_heads, size.head_dim))},
                        {"attn_v", from(queries + keys, consecutive_rows(0, keys))}});
}

}  // namespace

const Family kInternLm2 = {"internlm2", describe_internlm2, {"internlm2"}, translate_internlm2};

}  // namespace braid::model
