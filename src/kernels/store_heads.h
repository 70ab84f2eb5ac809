// Where the heads of a token go in a block of the pool (KvLayer), for all tiers. A tier brings, as Store:
//   floats(type, x, head_dim, base, stride)                       element d of f32 or f16 to base + d * stride elements
//   bf16_keys(x, head_dim, base, block_tokens)                    elements d and d + 1, d even, to base + d / 2 * block_tokens pairs
//   bf16_values(x, head_dim, base)                                element d, made finite, to base + d pairs
//   codes(x, head_dim, base, stride, scales, scale_stride)        the same as int8, the scale of group g to scales[g *
//   scale_stride]
// Internal linkage, because wide tiers include it.
#pragma once

#include "kernels/attention_view.h"
#include "kernels/kv_order.h"

namespace braid::kernels {

template <class Store>
static void store_heads(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) {
  if (kv.latent) values = keys;
  for (std::int32_t h = 0; h < kv.kv_heads; ++h, keys += kv.head_dim, values += kv.head_dim) {
    std::byte* head = kv.base + static_cast<std::size_t>(block) * kv.block_stride + static_cast<std::size_t>(h) * kv.head_stride;
    std::byte* value_rows = head + kv.value_offset;
    const std::int64_t row = std::int64_t{slot} * kv.head_dim;
    if (kv.type == KvType::kInt8) {
      std::byte* scales = head + kv.scale_offset + slot * 2;
      if (!kv.latent) Store::codes(keys, kv.head_dim, head + slot, kv.block_tokens, scales, kv.block_tokens);
      Store::codes(values, kv.head_dim, value_rows + row, 1, scales + value_scale_step(kv), kv.block_tokens);
    } else if (kv.type == KvType::kBF16) {
      if (!kv.latent) Store::bf16_keys(keys, kv.head_dim, head + key_element(kv.type, kv.block_tokens, slot, 0) * 2, kv.block_tokens);
      Store::bf16_values(values, kv.head_dim, value_rows + value_element(kv.type, kv.head_dim, slot, 0) * 2);
    } else {
      const std::int64_t size = kv_element_bytes(kv.type);
      if (!kv.latent) Store::floats(kv.type, keys, kv.head_dim, head + slot * size, kv.block_tokens);
      Store::floats(kv.type, values, kv.head_dim, value_rows + row * size, 1);
    }
  }
}

}  // namespace braid::kernels
