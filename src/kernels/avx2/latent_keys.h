// Keys of a latent pool, which are stored as values are: token by token. Internal linkage only.
#pragma once

#include "kernels/avx2/kv_load.h"
#include "kernels/query_tile.h"

#include <type_traits>

namespace braid::kernels::avx2 {

// Rows become columns.
static inline void transpose(__m256 (&rows)[8]) {
  __m256 pairs[8];  // of neighbouring rows, two columns in each half
  __m256 fours[8];  // of four rows, a column in each half
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

// Keys of the vectors [first, last), at most kUnpackedTokens positions, from a latent pool.
template <KvType kType, class Tile>
static inline void unpack_keys(Tile& tile, std::int32_t first, std::int32_t last) {
  const KvLayer& kv = *tile.kv;
  constexpr std::int64_t kPair = kv_pair(kType);
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  for (std::int32_t v = first; v < last; ++v) {
    float* keys = tile.unpacked + (v - first) * padded_dims(kv.head_dim) * 8;
    tile.keys[v] = reinterpret_cast<const std::byte*>(keys);
    const std::int32_t position = tile.chunk + v * 8;  // a block holds all eight
    const std::byte* head = head_bytes(tile, position);
    const auto unpack = [&](auto partial, std::int32_t d) {
      __m256 rows[8];
#pragma GCC unroll 8
      for (std::int32_t i = 0; i < 8; ++i) {
        const std::int64_t element = value_element(kType, kv.head_dim, position % kv.block_tokens + i / kPair * kPair, d);
        rows[i] = load_values<kType, decltype(partial)::value>(head + element * kBytes, kv.head_dim - d, i % kPair != 0);
      }
      transpose(rows);
#pragma GCC unroll 8
      for (std::int32_t i = 0; i < 8; ++i) _mm256_storeu_ps(keys + (d + i) * 8, rows[i]);
    };
    std::int32_t d = 0;
    for (; d + 8 <= kv.head_dim; d += 8) unpack(std::false_type{}, d);
    if (d < kv.head_dim) unpack(std::true_type{}, d);
  }
}

}  // namespace braid::kernels::avx2
