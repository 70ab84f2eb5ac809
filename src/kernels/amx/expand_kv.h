// Keys and values of a chunk as bf16 tiles, for any implementation of the tile instructions. A line of a weight tile holds, for 16
// columns, two consecutive elements of the inner dimension side by side: two dimensions of 16 keys, or two positions of 16 dimensions
// of the values. kInt8 codes and bf16 are exact; f16 is rounded to bf16. Blocks lie scattered, so what comes kAhead positions later is
// fetched by hand. Limit: reading memory; from the second-level cache about 6 instructions for 32 elements.
#pragma once

#include <kernels/amx/tiles.h>
#include <kernels/avx512/attention_part.h>
#include <kernels/avx512/kv_load.h>

namespace braid::kernels::amx {

constexpr std::int32_t kKeySteps = 32;  // dimensions, or positions, of one tile product
constexpr std::int32_t kAhead = 64;     // positions

static inline std::int64_t key_steps(std::int32_t head_dim) { return (head_dim + kKeySteps - 1) / kKeySteps; }
static inline std::int64_t value_vectors(std::int32_t head_dim) { return (head_dim + 15) / 16; }

// What expansion reads: one KV head of a sequence, positions [begin, end) of the chunk.
struct ChunkSource {
  const KvLayer& kv;
  const std::int32_t* blocks;
  std::int32_t head;
  std::int32_t chunk;
  std::int32_t begin;
  std::int32_t end;
  std::int32_t last;  // the batch's last position: nothing is fetched beyond it

  const std::byte* at(std::int32_t position) const { return avx512::kv_bytes(kv, blocks, head, position); }
  const std::byte* ahead_of(std::int32_t position) const { return at(position + kAhead <= last ? position + kAhead : position); }
  std::int32_t slot(std::int32_t position) const { return position & (kv.block_tokens - 1); }
};

static inline void fetch(const std::byte* from) { _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T0); }

// Bits 0 to 15 of each lane of the result are the lane's element of the first half of `rows`, bits 16 to 31 that of the second.
static inline __m512i interleave(__m512i rows) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i order = _mm512_or_si512(_mm512_or_si512(lanes, _mm512_slli_epi32(lanes, 16)), _mm512_set1_epi32(0x100000));
  return _mm512_permutexvar_epi16(order, rows);
}

// bf16 of `low` and then of `high`, half to even.
static inline __m512i round_to_bf16(__m512 low, __m512 high) {
  const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
  __m512i bits;
  __builtin_memcpy(&bits, &rounded, sizeof(bits));
  return bits;
}

// 16 stored elements.
template <KvType kType>
struct Row;
template <>
struct Row<KvType::kInt8> {
  __m128i bits;
};
template <>
struct Row<KvType::kF16> {
  __m256i bits;
};
template <>
struct Row<KvType::kBF16> {
  __m256i bits;
};

template <KvType kType>
static inline Row<kType> load_row(const std::byte* from) {
  if constexpr (kType == KvType::kInt8) return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))};
  else return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
// Elements out of the mask are zeros and not touched.
template <KvType kType>
static inline Row<kType> load_row(__mmask16 mask, const std::byte* from) {
  if constexpr (kType == KvType::kInt8) return {_mm_maskz_loadu_epi8(mask, from)};
  else return {_mm256_maskz_loadu_epi16(mask, from)};
}
// From two places, eight each.
template <KvType kType>
static inline Row<kType> load_row(const std::byte* low, const std::byte* high) {
  const auto whole = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  const auto half = [](const std::byte* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); };
  if constexpr (kType == KvType::kInt8) return {_mm_unpacklo_epi64(half(low), half(high))};
  else return {_mm256_inserti128_si256(_mm256_castsi128_si256(whole(low)), whole(high), 1)};
}

// A line of a tile: the elements of two rows as bf16, side by side. With kFinite infinities and NaNs become the largest numbers of bf16,
// because a weight of zero must remove any value.
template <bool kFinite>
static inline __m512i line_of(Row<KvType::kInt8> even, Row<KvType::kInt8> odd) {
  const __m512i low = _mm512_castps_si512(avx512::widen_codes(even.bits));
  const __m512i high = _mm512_castps_si512(avx512::widen_codes(odd.bits));
  return _mm512_mask_blend_epi16(0xAAAAAAAAU, _mm512_srli_epi32(low, 16), high);
}
template <bool kFinite>
static inline __m512i line_of(Row<KvType::kF16> even, Row<KvType::kF16> odd) {
  __m512 low = _mm512_cvtph_ps(even.bits);
  __m512 high = _mm512_cvtph_ps(odd.bits);
  if constexpr (kFinite) {
    constexpr int kSmallerMagnitude = 2;
    const __m512 most = _mm512_castsi512_ps(_mm512_set1_epi32(0x7F7F0000));
    low = _mm512_range_ps(low, most, kSmallerMagnitude);
    high = _mm512_range_ps(high, most, kSmallerMagnitude);
  }
  return interleave(round_to_bf16(low, high));
}
template <bool kFinite>
static inline __m512i line_of(Row<KvType::kBF16> even, Row<KvType::kBF16> odd) {
  __m512i rows = _mm512_inserti64x4(_mm512_castsi256_si512(even.bits), odd.bits, 1);
  if constexpr (kFinite) {
    const __m512i magnitude = _mm512_min_epu16(_mm512_and_si512(rows, _mm512_set1_epi16(0x7FFF)), _mm512_set1_epi16(0x7F7F));
    rows = _mm512_or_si512(magnitude, _mm512_andnot_si512(_mm512_set1_epi16(0x7FFF), rows));
  }
  return interleave(rows);
}

// Lines for the 16 positions of one column of key tiles. kHalves: the second eight lie at `high`. What lies at `ahead` is fetched.
template <KvType kType, bool kHalves>
static inline void expand_key_column(const std::byte* low, const std::byte* high, const std::byte* ahead, std::int64_t stride,
                                     std::int32_t head_dim, std::byte* tile) {
  const auto load = [&](std::int64_t d) {
    if constexpr (kHalves) return load_row<kType>(low + d * stride, high + d * stride);
    else return load_row<kType>(low + d * stride);
  };
  std::int32_t d = 0;
  for (; d + kKeySteps <= head_dim; d += kKeySteps, tile += avx512::kVectors * kTileBytes) {
#pragma GCC unroll 4
    for (std::int32_t i = 0; i < kKeySteps; i += 2) {
      fetch(ahead + (d + i) * stride);
      _mm512_store_si512(tile + i / 2 * kTileRowBytes, line_of<false>(load(d + i), load(d + i + 1)));
    }
  }
  if (d == head_dim) return;
  for (std::int32_t i = 0; i < kKeySteps; i += 2) {
    const Row<kType> even = d + i < head_dim ? load(d + i) : Row<kType>{};
    const Row<kType> odd = d + i + 1 < head_dim ? load(d + i + 1) : Row<kType>{};
    _mm512_store_si512(tile + i / 2 * kTileRowBytes, line_of<false>(even, odd));
  }
}

// tiles: [key_steps, vectors of 16 positions, tile]; vectors out of [begin, end) stay as they are.
template <KvType kType>
static void expand_keys(const ChunkSource& source, std::byte* tiles) {
  const KvLayer& kv = source.kv;
  const std::int64_t stride = kv.block_tokens * avx512::kKvBytes<kType>;
  for (std::int32_t v = (source.begin - source.chunk) / 16; source.chunk + v * 16 < source.end; ++v) {
    const std::int32_t position = source.chunk + v * 16;
    const std::int64_t offset = source.slot(position) * avx512::kKvBytes<kType>;
    const std::byte* low = source.at(position) + offset;
    const std::byte* ahead = source.ahead_of(position) + offset;
    std::byte* tile = tiles + v * kTileBytes;
    if (kv.block_tokens < 16) {
      const std::byte* high = position + 8 < source.end ? source.at(position + 8) : low;
      expand_key_column<kType, true>(low, high, ahead, stride, kv.head_dim, tile);
    } else {
      expand_key_column<kType, false>(low, low, ahead, stride, kv.head_dim, tile);
    }
  }
}

// Lines for two positions, next to each other in `row`; one that is not there is zeros.
template <KvType kType>
static inline void expand_value_pair(const std::byte* row, bool even, bool odd, std::int32_t head_dim, std::byte* line) {
  const std::int64_t row_bytes = head_dim * avx512::kKvBytes<kType>;
  std::int32_t d = 0;
  if (even && odd) {
    for (; d + 16 <= head_dim; d += 16, line += kTileBytes) {
      const std::byte* from = row + d * avx512::kKvBytes<kType>;
      _mm512_store_si512(line, line_of<true>(load_row<kType>(from), load_row<kType>(from + row_bytes)));
    }
  }
  for (; d < head_dim; d += 16, line += kTileBytes) {
    const __mmask16 mask = avx512::first_lanes(head_dim - d);
    const std::byte* from = row + d * avx512::kKvBytes<kType>;
    const Row<kType> low = even ? load_row<kType>(mask, from) : Row<kType>{};
    const Row<kType> high = odd ? load_row<kType>(mask, from + row_bytes) : Row<kType>{};
    _mm512_store_si512(line, line_of<true>(low, high));
  }
}

// tiles: [steps of 32 positions, value_vectors, tile]; positions out of [begin, end) become zeros in the steps that hold some of it.
template <KvType kType>
static void expand_values(const ChunkSource& source, std::byte* tiles) {
  const KvLayer& kv = source.kv;
  const std::int32_t head_dim = kv.head_dim;
  const std::int64_t vectors = value_vectors(head_dim);
  const std::int64_t row_bytes = head_dim * avx512::kKvBytes<kType>;
  const auto value_bytes = static_cast<std::int64_t>(kv.value_offset);
  const std::int32_t first = source.chunk + (source.begin - source.chunk) / kKeySteps * kKeySteps;
  const std::int32_t last = source.chunk + (source.end - source.chunk + kKeySteps - 1) / kKeySteps * kKeySteps;
  for (std::int32_t eight = first; eight < last; eight += 8) {  // a block holds all of them
    const std::int32_t held = eight < source.end && eight + 8 > source.begin ? eight : source.begin;  // there may be no block for the others
    const std::int64_t offset = value_bytes + source.slot(held) * row_bytes;
    const std::byte* rows = source.at(held) + offset;
    const std::byte* ahead = source.ahead_of(held) + offset;
    for (std::int64_t i = 0; i < 8 * row_bytes; i += 64) fetch(ahead + i);
    for (std::int32_t t = eight; t < eight + 8; t += 2) {
      const bool even = t >= source.begin && t < source.end;
      const bool odd = t + 1 >= source.begin && t + 1 < source.end;
      const std::int32_t at = t - source.chunk;
      std::byte* line = tiles + at / kKeySteps * vectors * kTileBytes + at % kKeySteps / 2 * kTileRowBytes;
      expand_value_pair<kType>(rows + (t - eight) * row_bytes, even, odd, head_dim, line);
    }
  }
}

static inline void expand(const ChunkSource& source, std::byte* keys, std::byte* values) {
  switch (source.kv.type) {
    case KvType::kF32:
      return;  // attended in floats
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
