// Keys of a latent pool, which are stored as values are: token by token. Internal linkage only.
#pragma once

#include "kernels/avx512/kv_load.h"
#include "kernels/avx512/transpose.h"
#include "kernels/query_tile.h"

namespace braid::kernels::avx512 {

// Keys of the vectors [first, last), at most kUnpackedTokens positions, from a latent pool; `end` is the sequence's end.
template <KvType kType, class Tile>
static inline void unpack_keys(Tile& tile, std::int32_t first, std::int32_t last, std::int32_t end) {
  const KvLayer& kv = *tile.kv;
  constexpr std::int64_t kPair = kv_pair(kType);
  constexpr std::int64_t kBytes = kv_element_bytes(kType) * kPair;
  for (std::int32_t v = first; v < last; ++v) {
    float* keys = tile.unpacked + (v - first) * padded_dims(kv.head_dim) * 16;
    tile.keys[v].low = reinterpret_cast<const std::byte*>(keys);
    const std::byte* token[16];
    for (std::int32_t i = 0; i < 16; ++i) {  // past the sequence there may be no block; those lanes are not used
      const std::int32_t position = tile.chunk + v * 16 + i < end ? tile.chunk + v * 16 + i : end - 1;
      const std::int32_t slot = position % kv.block_tokens;
      token[i] = head_bytes(tile, position) + value_element(kType, kv.head_dim, slot - slot % kPair, 0) * kv_element_bytes(kType);
    }
    for (std::int32_t d = 0; d < kv.head_dim; d += 16) {
      const __mmask16 mask = first_lanes(kv.head_dim - d);
      __m512i rows[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) rows[i] = _mm512_castps_si512(load_kv<kType>(mask, token[i] + d * kBytes, i % kPair != 0));
      transpose(rows);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(keys + (d + i) * 16, rows[i]);
    }
  }
}

}  // namespace braid::kernels::avx512
