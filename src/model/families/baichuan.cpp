// Baichuan 1 and 2 (2023): Llama whose queries, keys and values lie in one tensor; 13B has scores that fall with distance instead of rotation.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

// Has no rotation; no key says it.
constexpr std::size_t kLayersOf13B = 40;

ModelShape describe_baichuan(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  if (model.layers.size() == kLayersOf13B) add_slopes(model, 8.0);
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kBaichuanNames[] = {{"self_attn.W_pack", "attn_qkv"}};

void translate_baichuan(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kBaichuanNames);
  if (in.config.error) return;
  const std::int32_t width = size.heads * size.head_dim;
  RowOrder queries = paired_rows(size.heads, size.head_dim);
  RowOrder keys = queries;
  for (std::int32_t& row : keys) row += width;
  in.split("attn_qkv", {{"attn_q", std::move(queries)}, {"attn_k", std::move(keys)}, {"attn_v", consecutive_rows(2 * width, width)}});
}

}  // namespace

const Family kBaichuan = {"baichuan", describe_baichuan, {"baichuan"}, translate_baichuan};

}  // namespace braid::model
