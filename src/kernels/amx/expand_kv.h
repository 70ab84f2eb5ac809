// Keys and values of a chunk as bf16 tiles, for any implementation of the tile instructions. A line of a weight tile holds, for 16
// columns, two consecutive elements of the inner dimension side by side: two dimensions of 16 keys, or two positions of 16 dimensions
// of the values. bf16 is exact; f16 and codes times their scales are rounded to bf16. Scaling elements costs less than scaling the scores
// and weights of a batch of queries. Blocks lie scattered, so what comes kAhead positions later is fetched by hand. Limit: reading memory;
// from the second-level cache about 8 instructions for 32 elements.
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
  std::int32_t last;  // the batch's last position
  NextContext next;

  const std::byte* at(std::int32_t position) const { return kv_bytes(kv, blocks, head, position); }
  std::int32_t slot(std::int32_t position) const { return position & (kv.block_tokens - 1); }
};

// The head's bytes in the block that lies kAhead positions farther, or, beyond the last block, in one of the next context's: in both at the
// same slot, since blocks divide kAhead.
static inline const std::byte* ahead_of(const ChunkSource& source, std::int32_t position) {
  const NextContext& next = source.next;
  const std::int32_t there = position + kAhead;
  if (there <= source.last) return source.at(there);
  const std::int32_t beyond = there - (source.last / source.kv.block_tokens + 1) * source.kv.block_tokens;
  if (next.blocks == nullptr || beyond < 0 || next.begin + beyond > next.last) return source.at(position);
  return kv_bytes(source.kv, next.blocks, next.head, next.begin + beyond);
}

static inline void fetch(const std::byte* from) { _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1); }

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

// kInt8: what multiplies the codes of two rows.
struct Scales {
  __m512 even;
  __m512 odd;
};

// What makes values finite, because a weight of zero must remove any: of two numbers VRANGEPS takes that of smaller magnitude, and of a
// number and a NaN the number.
constexpr int kSmallerMagnitude = 2;

// A line of a tile: the elements of two rows as bf16, side by side. With kFinite infinities and NaNs become the largest numbers of bf16;
// scales of the values are finite already.
template <bool kFinite>
static inline __m512i line_of(Row<KvType::kInt8> even, Row<KvType::kInt8> odd, const Scales& scales) {
  const __m512 low = _mm512_mul_ps(avx512::widen_codes(even.bits), scales.even);
  const __m512 high = _mm512_mul_ps(avx512::widen_codes(odd.bits), scales.odd);
  return interleave(round_to_bf16(low, high));
}
template <bool kFinite>
static inline __m512i line_of(Row<KvType::kF16> even, Row<KvType::kF16> odd, const Scales& /*none*/) {
  __m512 low = _mm512_cvtph_ps(even.bits);
  __m512 high = _mm512_cvtph_ps(odd.bits);
  if constexpr (kFinite) {
    const __m512 most = _mm512_castsi512_ps(_mm512_set1_epi32(0x7F7F0000));
    low = _mm512_range_ps(low, most, kSmallerMagnitude);
    high = _mm512_range_ps(high, most, kSmallerMagnitude);
  }
  return interleave(round_to_bf16(low, high));
}
template <bool kFinite>
static inline __m512i line_of(Row<KvType::kBF16> even, Row<KvType::kBF16> odd, const Scales& /*none*/) {
  __m512i rows = _mm512_inserti64x4(_mm512_castsi256_si512(even.bits), odd.bits, 1);
  if constexpr (kFinite) {
    const __m512i magnitude = _mm512_min_epu16(_mm512_and_si512(rows, _mm512_set1_epi16(0x7FFF)), _mm512_set1_epi16(0x7F7F));
    rows = _mm512_or_si512(magnitude, _mm512_andnot_si512(_mm512_set1_epi16(0x7FFF), rows));
  }
  return interleave(rows);
}

// Where 16 stored elements lie: together, or, in blocks of 8, eight at `low` and eight at `high`.
template <bool kHalves>
struct Column {
  const std::byte* low;
  const std::byte* high;

  template <KvType kType>
  Row<kType> load(std::int64_t offset) const {
    if constexpr (kHalves) return load_row<kType>(low + offset, high + offset);
    else return load_row<kType>(low + offset);
  }
};

// Lines for the 16 positions of one column of key tiles; `scales` are theirs, of the first group, if the type is kInt8. What lies at
// `ahead` is fetched.
template <KvType kType, bool kHalves>
static inline void expand_key_column(const KvLayer& kv, Column<kHalves> keys, Column<kHalves> scales, const std::byte* ahead,
                                     std::byte* tile) {
  const std::int64_t stride = kv.block_tokens * avx512::kKvBytes<kType>;
  const auto scales_of = [&](std::int32_t d) {
    if constexpr (kType != KvType::kInt8) return Scales{};
    const __m512 scale = _mm512_cvtph_ps(scales.template load<KvType::kF16>(d / kKvGroup * kv.block_tokens * 2).bits);
    return Scales{scale, scale};
  };
  std::int32_t d = 0;
  for (; d + kKeySteps <= kv.head_dim; d += kKeySteps, tile += avx512::kVectors * kTileBytes) {
    const Scales both = scales_of(d);
#pragma GCC unroll 4
    for (std::int32_t i = 0; i < kKeySteps; i += 2) {
      fetch(ahead + (d + i) * stride);
      const Row<kType> even = keys.template load<kType>((d + i) * stride);
      const Row<kType> odd = keys.template load<kType>((d + i + 1) * stride);
      _mm512_store_si512(tile + i / 2 * kTileRowBytes, line_of<false>(even, odd, both));
    }
  }
  if (d == kv.head_dim) return;
  for (std::int32_t i = 0; i < kKeySteps; i += 2) {
    const Row<kType> even = d + i < kv.head_dim ? keys.template load<kType>((d + i) * stride) : Row<kType>{};
    const Row<kType> odd = d + i + 1 < kv.head_dim ? keys.template load<kType>((d + i + 1) * stride) : Row<kType>{};
    _mm512_store_si512(tile + i / 2 * kTileRowBytes, line_of<false>(even, odd, scales_of(d)));
  }
}

// tiles: [key_steps, vectors of 16 positions, tile]; vectors out of [begin, end) stay as they are.
template <KvType kType, bool kHalves>
static void expand_keys(const ChunkSource& source, std::byte* tiles) {
  const KvLayer& kv = source.kv;
  const auto scale_bytes = static_cast<std::int64_t>(kv.scale_offset);
  for (std::int32_t v = (source.begin - source.chunk) / 16; source.chunk + v * 16 < source.end; ++v) {
    const std::int32_t position = source.chunk + v * 16;
    const std::int64_t slot = source.slot(position);
    const std::byte* low = source.at(position);
    const std::byte* high = kHalves && position + 8 < source.end ? source.at(position + 8) : low;
    const std::byte* ahead = ahead_of(source, position);
    const std::int64_t offset = slot * avx512::kKvBytes<kType>;
    if (kType == KvType::kInt8) fetch(ahead + scale_bytes);
    expand_key_column<kType, kHalves>(kv, {low + offset, high + offset}, {low + scale_bytes + slot * 2, high + scale_bytes + slot * 2},
                                      ahead + offset, tiles + v * kTileBytes);
  }
}

// The scales of eight positions; infinities and NaNs become the largest number of f16.
struct EightScales {
  alignas(32) float of[8];

  static EightScales load(const std::byte* from) {
    const __m256 scales = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    EightScales finite;
    _mm256_store_ps(finite.of, _mm256_range_ps(scales, _mm256_set1_ps(65504.0F), kSmallerMagnitude));
    return finite;
  }
  Scales pair(std::int32_t first) const { return {_mm512_set1_ps(of[first]), _mm512_set1_ps(of[first + 1])}; }
};

// Lines for two positions next to each other, of dimensions [begin, end); one that is not there is zeros.
template <KvType kType>
static inline void expand_value_pair(const std::byte* row, std::int64_t row_bytes, bool even, bool odd, std::int32_t begin, std::int32_t end,
                                     const Scales& scales, std::byte* line) {
  constexpr std::int64_t kBytes = avx512::kKvBytes<kType>;
  std::int32_t d = begin;
  row += begin * kBytes;
  line += begin / 16 * kTileBytes;
  if (even && odd) {
#pragma GCC unroll 4
    for (; d + 16 <= end; d += 16, row += 16 * kBytes, line += kTileBytes)
      _mm512_store_si512(line, line_of<true>(load_row<kType>(row), load_row<kType>(row + row_bytes), scales));
  }
  for (; d < end; d += 16, row += 16 * kBytes, line += kTileBytes) {
    const __mmask16 mask = avx512::first_lanes(end - d);
    const Row<kType> low = even ? load_row<kType>(mask, row) : Row<kType>{};
    const Row<kType> high = odd ? load_row<kType>(mask, row + row_bytes) : Row<kType>{};
    _mm512_store_si512(line, line_of<true>(low, high, scales));
  }
}

// tiles: [steps of 32 positions, value_vectors, tile]; positions out of [begin, end) become zeros in the steps that hold some of it.
template <KvType kType>
static void expand_values(const ChunkSource& source, std::byte* tiles) {
  const KvLayer& kv = source.kv;
  const std::int32_t head_dim = kv.head_dim;
  const std::int64_t vectors = value_vectors(head_dim);
  const std::int64_t row_bytes = head_dim * avx512::kKvBytes<kType>;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const std::int64_t scale_bytes = static_cast<std::int64_t>(kv.scale_offset) + kv_groups(head_dim) * kv.block_tokens * 2;
  const std::int32_t first = (source.begin - source.chunk) / kKeySteps * kKeySteps;
  const std::int32_t last = (source.end - source.chunk + kKeySteps - 1) / kKeySteps * kKeySteps;
  for (std::int32_t at = first; at < last; at += 8) {  // a block holds all eight
    const std::int32_t eight = source.chunk + at;
    const auto present = static_cast<unsigned>(avx512::first_lanes(source.end - eight) & ~avx512::first_lanes(source.begin - eight)) & 0xFFU;
    const std::int32_t held = present != 0 ? eight : source.begin / 8 * 8;  // there may be no block for the others
    const std::int64_t offset = static_cast<std::int64_t>(kv.value_offset) + source.slot(held) * row_bytes;
    const std::byte* rows = source.at(held) + offset;
    const std::byte* ahead = ahead_of(source, held) + offset;
    const std::byte* scales = source.at(held) + scale_bytes + source.slot(held) * 2;
    std::byte* lines = tiles + at / kKeySteps * vectors * kTileBytes + at % kKeySteps / 2 * kTileRowBytes;
    for (std::int64_t i = 0; i < 8 * row_bytes; i += 64) fetch(ahead + i);
    for (std::int32_t d = 0; d < head_dim; d += group, scales += kv.block_tokens * 2) {
      const EightScales own = kType == KvType::kInt8 ? EightScales::load(scales) : EightScales{};
      for (std::int32_t t = 0; t < 8; t += 2) {
        const Scales both = kType == KvType::kInt8 ? own.pair(t) : Scales{};
        expand_value_pair<kType>(rows + t * row_bytes, row_bytes, (present >> t & 1) != 0, (present >> t & 2) != 0, d,
                                 head_dim - d < group ? head_dim : d + group, both, lines + t / 2 * kTileRowBytes);
      }
    }
  }
}

template <KvType kType>
static inline void expand_typed(const ChunkSource& source, std::byte* keys, std::byte* values) {
  source.kv.block_tokens < 16 ? expand_keys<kType, true>(source, keys) : expand_keys<kType, false>(source, keys);
  expand_values<kType>(source, values);
}

static inline void expand(const ChunkSource& source, std::byte* keys, std::byte* values) {
  switch (source.kv.type) {
    case KvType::kF32:
      return;  // attended in floats
    case KvType::kF16:
      return expand_typed<KvType::kF16>(source, keys, values);
    case KvType::kBF16:
      return expand_typed<KvType::kBF16>(source, keys, values);
    case KvType::kInt8:
      return expand_typed<KvType::kInt8>(source, keys, values);
  }
}

}  // namespace braid::kernels::amx
