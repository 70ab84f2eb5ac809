// Keys of a latent pool, which are stored as values are: token by token. Internal linkage only.
#pragma once

#include "kernels/neon/kv_load.h"
#include "kernels/query_tile.h"

#include <type_traits>

namespace braid::kernels::neon {

// Rows become columns.
static inline void transpose(float32x4_t (&rows)[4]) {
  const auto pairs = [](float32x4_t row) { return vreinterpretq_f64_f32(row); };
  const float64x2_t low[2] = {pairs(vtrn1q_f32(rows[0], rows[1])), pairs(vtrn2q_f32(rows[0], rows[1]))};
  const float64x2_t high[2] = {pairs(vtrn1q_f32(rows[2], rows[3])), pairs(vtrn2q_f32(rows[2], rows[3]))};
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    rows[i] = vreinterpretq_f32_f64(vtrn1q_f64(low[i], high[i]));
    rows[i + 2] = vreinterpretq_f32_f64(vtrn2q_f64(low[i], high[i]));
  }
}

// Keys of the vectors [first, last), at most kUnpackedTokens positions, from a latent pool.
template <KvType kType, class Tile>
static inline void unpack_keys(Tile& tile, std::int32_t first, std::int32_t last) {
  const KvLayer& kv = *tile.kv;
  constexpr std::int64_t kPair = kv_pair(kType);
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  for (std::int32_t v = first; v < last; ++v) {
    float* keys = tile.unpacked + (v - first) * padded_dims(kv.head_dim) * 4;
    tile.keys[v] = reinterpret_cast<const std::byte*>(keys);
    const std::int32_t position = tile.chunk + v * 4;  // a block holds all four
    const std::byte* head = head_bytes(tile, position);
    const auto unpack = [&](auto partial, std::int32_t d) {
      float32x4_t rows[4];
#pragma GCC unroll 4
      for (std::int32_t i = 0; i < 4; ++i) {
        const std::int64_t element = value_element(kType, kv.head_dim, position % kv.block_tokens + i / kPair * kPair, d);
        rows[i] = load_values<kType, decltype(partial)::value>(head + element * kBytes, kv.head_dim - d, i % kPair != 0);
      }
      transpose(rows);
#pragma GCC unroll 4
      for (std::int32_t i = 0; i < 4; ++i) vst1q_f32(keys + (d + i) * 4, rows[i]);
    };
    std::int32_t d = 0;
    for (; d + 4 <= kv.head_dim; d += 4) unpack(std::false_type{}, d);
    if (d < kv.head_dim) unpack(std::true_type{}, d);
  }
}

}  // namespace braid::kernels::neon
