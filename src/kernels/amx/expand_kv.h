// Keys and values of a chunk as bf16 tiles, for any implementation of the tile instructions. A line of a weight tile holds, for 16
// columns, two consecutive elements of the inner dimension side by side: two dimensions of 16 keys, or two positions of 16 dimensions
// of the values. kInt8 codes and bf16 are exact; f16 and f32 are rounded to bf16.
#pragma once

#include <kernels/amx/tiles.h>
#include <kernels/avx512/attention_part.h>
#include <kernels/avx512/kv_load.h>

namespace braid::kernels::amx {

constexpr std::int32_t kKeySteps = 32;  // dimensions, or positions, of one tile product

static inline std::int64_t key_steps(std::int32_t head_dim) { return (head_dim + kKeySteps - 1) / kKeySteps; }
static inline std::int64_t value_vectors(std::int32_t head_dim) { return (head_dim + 15) / 16; }

// Rounds the low half of each lane away, half to even; not for NaNs.
static inline __m512i round_bits(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
}

// bf16 of `even` in the low halves and of `odd` in the high ones.
template <bool kExact>
static inline __m512i pair_bf16(__m512 even, __m512 odd) {
  const __m512i low = kExact ? _mm512_castps_si512(even) : round_bits(even);
  const __m512i high = kExact ? _mm512_castps_si512(odd) : round_bits(odd);
  return _mm512_or_si512(_mm512_srli_epi32(low, 16), _mm512_and_si512(high, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

template <KvType kType>
constexpr bool kExactInBf16 = kType == KvType::kBF16 || kType == KvType::kInt8;

// What expansion reads: one KV head of a sequence, positions [begin, end) of the chunk.
struct ChunkSource {
  const KvLayer& kv;
  const std::int32_t* blocks;
  std::int32_t head;
  std::int32_t chunk;
  std::int32_t begin;
  std::int32_t end;
};

// tiles: [key_steps, vectors of 16 positions, tile]; vectors out of [begin, end) stay as they are.
template <KvType kType>
static void expand_keys(const ChunkSource& source, std::byte* tiles) {
  const KvLayer& kv = source.kv;
  const std::int64_t stride = kv.block_tokens * avx512::kKvBytes<kType>;
  for (std::int32_t v = (source.begin - source.chunk) / 16; source.chunk + v * 16 < source.end; ++v) {
    const std::int32_t position = source.chunk + v * 16;
    const std::byte* low =
        avx512::kv_bytes(kv, source.blocks, source.head, position) + position % kv.block_tokens * avx512::kKvBytes<kType>;
    const bool halves = kv.block_tokens < 16 && position + 8 < source.end;
    const std::byte* high = halves ? avx512::kv_bytes(kv, source.blocks, source.head, position + 8) : low;
    const auto load = [&](std::int32_t d) {
      if (d >= kv.head_dim) return _mm512_setzero_ps();
      if (kv.block_tokens < 16) return avx512::load_kv<kType>(low + d * stride, high + d * stride);
      return avx512::load_kv<kType>(low + d * stride);
    };
    for (std::int32_t d = 0; d < key_steps(kv.head_dim) * kKeySteps; d += 2) {
      std::byte* line = tiles + (d / kKeySteps * avx512::kVectors + v) * kTileBytes + d % kKeySteps / 2 * kTileRowBytes;
      _mm512_store_si512(line, pair_bf16<kExactInBf16<kType>>(load(d), load(d + 1)));
    }
  }
}

// A weight of zero must remove any value: infinities and NaNs become the largest numbers of bf16.
static inline __m512 finite(__m512 x) {
  const __m512 most = _mm512_castsi512_ps(_mm512_set1_epi32(0x7F7F0000));
  return _mm512_max_ps(_mm512_min_ps(x, most), _mm512_sub_ps(_mm512_setzero_ps(), most));
}

// tiles: [steps of 32 positions, value_vectors, tile]; positions out of [begin, end) become zeros in the steps that hold some of it.
template <KvType kType>
static void expand_values(const ChunkSource& source, std::byte* tiles) {
  const KvLayer& kv = source.kv;
  const std::int64_t vectors = value_vectors(kv.head_dim);
  const std::int64_t row_bytes = kv.head_dim * avx512::kKvBytes<kType>;
  const auto row_of = [&](std::int32_t t) -> const std::byte* {
    if (t < source.begin || t >= source.end) return nullptr;
    return avx512::kv_bytes(kv, source.blocks, source.head, t) + kv.value_offset + t % kv.block_tokens * row_bytes;
  };
  const std::int32_t first = source.chunk + (source.begin - source.chunk) / kKeySteps * kKeySteps;
  const std::int32_t last = source.chunk + (source.end - source.chunk + kKeySteps - 1) / kKeySteps * kKeySteps;
  for (std::int32_t t = first; t < last; t += 2) {
    const std::byte* even = row_of(t);
    const std::byte* odd = row_of(t + 1);
    const std::int32_t at = t - source.chunk;
    std::byte* line = tiles + at / kKeySteps * vectors * kTileBytes + at % kKeySteps / 2 * kTileRowBytes;
    for (std::int64_t v = 0; v < vectors; ++v, line += kTileBytes) {
      const __mmask16 mask = avx512::first_lanes(kv.head_dim - v * 16);
      const auto load = [&](const std::byte* row) {
        if (row == nullptr) return _mm512_setzero_ps();
        const __m512 values = avx512::load_kv<kType>(mask, row + v * 16 * avx512::kKvBytes<kType>);
        return kType == KvType::kInt8 ? values : finite(values);
      };
      _mm512_store_si512(line, pair_bf16<kExactInBf16<kType>>(load(even), load(odd)));
    }
  }
}

static inline void expand(const ChunkSource& source, std::byte* keys, std::byte* values) {
  switch (source.kv.type) {
    case KvType::kF32:
      expand_keys<KvType::kF32>(source, keys);
      return expand_values<KvType::kF32>(source, values);
    case KvType::kF16:
      expand_keys<KvType::kF16>(source, keys);
      return expand_values<KvType::kF16>(source, values);
    case KvType::kBF16:
      expand_keys<KvType::kBF16>(source, keys);
      return expand_values<KvType::kBF16>(source, values);
    case KvType::kInt8:
      expand_keys<KvType::kInt8>(source, keys);
      return expand_values<KvType::kInt8>(source, values);
  }
}

}  // namespace braid::kernels::amx
