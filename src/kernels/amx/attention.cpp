// Pools of floats are attended in floats, as the AVX-512 tier does.
#include "kernels/amx/attention.h"

#include "kernels/amx/tier.h"
#include "kernels/avx512/tier.h"

namespace braid::kernels::amx {

std::size_t attention_scratch_bytes(std::int32_t heads, std::int32_t head_dim, bool latent) noexcept {
  Batch batch;
  const std::size_t own = lay_out(batch, head_dim, nullptr);
  const std::size_t wide = avx512::attention_scratch_bytes(heads, head_dim, latent);
  return own > wide ? own : wide;
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  if (args.kv->type == KvType::kF32) return avx512::attention(args, row_begin, row_end, kv_head_begin, kv_head_end);
  HardwareTiles tiles;
  attend_rows(tiles, args, row_begin, row_end, kv_head_begin, kv_head_end);
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  if (args.kv->type == KvType::kF32) return avx512::attention_part(args, row, kv_head, chunk, parts);
  HardwareTiles tiles;
  attend_part(tiles, args, row, kv_head, chunk, parts);
}

}  // namespace braid::kernels::amx
