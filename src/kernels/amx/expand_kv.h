// Keys and values of a chunk as lines of bf16 tiles in scratch, or found in the pool (kv_tiles.h). f16 and codes times their scales are
// rounded to bf16. Scaling elements costs less than scaling the scores and weights of a batch of queries. Blocks lie scattered, so what
// comes kAhead positions later is fetched by hand. Limit: reading memory; from the second-level cache about 8 instructions for 32 elements.
#pragma once

#include "kernels/amx/bf16.h"
#include "kernels/amx/kv_tiles.h"
#include "kernels/avx512/kv_load.h"
#include "kernels/avx512/transpose.h"
#include "kernels/half.h"

namespace braid::kernels::amx {

// Bits 0 to 15 of each lane of the result are the lane's element of the first half of `rows`, bits 16 to 31 that of the second.
static inline __m512i interleave(__m512i rows) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i order = _mm512_or_si512(_mm512_or_si512(lanes, _mm512_slli_epi32(lanes, 16)), _mm512_set1_epi32(0x100000));
  return _mm512_permutexvar_epi16(order, rows);
}

// Of bf16 pairs the first and the second elements, those that are wanted; zeros for others.
static inline __m512i keep_elements(__m512i pairs, bool first, bool second) {
  const unsigned kept = (first ? 0x0000FFFFU : 0U) | (second ? 0xFFFF0000U : 0U);
  return _mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(kept)));
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

template <KvType kType>
static inline Row<kType> load_row(const std::byte* from) {
  if constexpr (kType == KvType::kInt8)
    return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))};
  else
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
// Elements out of the mask are zeros and not touched.
template <KvType kType>
static inline Row<kType> load_row(__mmask16 mask, const std::byte* from) {
  if constexpr (kType == KvType::kInt8)
    return {_mm_maskz_loadu_epi8(mask, from)};
  else
    return {_mm256_maskz_loadu_epi16(mask, from)};
}
// From two places, eight each.
template <KvType kType>
static inline Row<kType> load_row(const std::byte* low, const std::byte* high) {
  const auto whole = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  const auto half = [](const std::byte* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); };
  if constexpr (kType == KvType::kInt8)
    return {_mm_unpacklo_epi64(half(low), half(high))};
  else
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(whole(low)), whole(high), 1)};
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

// Where 16 stored elements lie, of bf16 pairs of them: together, or, in blocks of 8, eight at `low` and eight at `high`.
template <bool kHalves>
struct Column {
  const std::byte* low;
  const std::byte* high;

  template <KvType kType>
  Row<kType> load(std::int64_t offset) const {
    if constexpr (kHalves)
      return load_row<kType>(low + offset, high + offset);
    else
      return load_row<kType>(low + offset);
  }
  __m512i load_pairs(std::int64_t offset) const {
    if constexpr (!kHalves) return _mm512_loadu_si512(low + offset);
    const auto half = [&](const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + offset)); };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(low)), half(high), 1);
  }
};

// Lines for the 16 positions of a vector of keys, up to whole tiles; `scales` are theirs, of the first group, if the type is kInt8. What
// lies at `ahead` is fetched.
template <KvType kType, bool kHalves>
static inline void expand_key_vector(const KvLayer& kv, Column<kHalves> keys, Column<kHalves> scales, const std::byte* ahead,
                                     std::byte* line) {
  const std::int64_t stride = kv.block_tokens * kv_element_bytes(kType);
  const auto scales_of = [&](std::int32_t d) {
    if constexpr (kType != KvType::kInt8) return Scales{};
    const __m512 scale = _mm512_cvtph_ps(scales.template load<KvType::kF16>(d / kKvGroup * kv.block_tokens * 2).bits);
    return Scales{scale, scale};
  };
  const auto line_at = [&](std::int32_t d, const Scales& both, bool second) {
    if constexpr (kType == KvType::kBF16)
      return keep_elements(keys.load_pairs(d * stride), true, second);
    else
      return line_of<false>(keys.template load<kType>(d * stride), second ? keys.template load<kType>((d + 1) * stride) : Row<kType>{},
                            both);
  };
  std::int32_t d = 0;
  for (; d + kKeyDims <= kv.head_dim; d += kKeyDims) {
    const Scales both = scales_of(d);
#pragma GCC unroll 4
    for (std::int32_t i = 0; i < kKeyDims; i += 2, line += kTileRowBytes) {
      fetch(ahead + (d + i) * stride);
      _mm512_store_si512(line, line_at(d + i, both, true));
    }
  }
  for (; d < key_steps(kv.head_dim) * kKeyDims; d += 2, line += kTileRowBytes)
    _mm512_store_si512(line, d < kv.head_dim ? line_at(d, scales_of(d), d + 1 < kv.head_dim) : _mm512_setzero_si512());
}

// In scratch: [vectors, key_steps, tile].
template <KvType kType, bool kHalves>
static void expand_keys(const ChunkSource& source, Lines& lines) {
  const KvLayer& kv = source.kv;
  const auto scale_bytes = static_cast<std::int64_t>(kv.scale_offset);
  lines.stride = kTileRowBytes;
  for (std::int32_t v = source.first_vector(); v < source.last_vector(); ++v) {
    const std::int32_t position = source.chunk + v * 16;
    const std::int64_t slot = source.slot(position);
    const std::byte* low = source.at(position);
    const std::byte* high = kHalves && position + 8 < source.end ? source.at(position + 8) : low;
    const std::byte* ahead = ahead_of(source, position);
    const std::int64_t offset = slot * kv_element_bytes(kType) * kv_pair(kType);
    if (kType == KvType::kInt8) fetch(ahead + scale_bytes);
    std::byte* line = lines.scratch + v * key_steps(kv.head_dim) * kTileBytes;
    expand_key_vector<kType, kHalves>(kv, {low + offset, high + offset}, {low + scale_bytes + slot * 2, high + scale_bytes + slot * 2},
                                      ahead + offset, line);
    lines.at[v] = line;
  }
}

// Of a latent pool: [vectors, key_steps, tile], made of its values.
template <KvType kType>
static void expand_latent_keys(const ChunkSource& source, Lines& lines) {
  const KvLayer& kv = source.kv;
  constexpr std::int64_t kPair = kv_pair(kType);
  constexpr std::int64_t kBytes = kv_element_bytes(kType) * kPair;
  lines.stride = kTileRowBytes;
  for (std::int32_t v = source.first_vector(); v < source.last_vector(); ++v) {
    std::byte* line = lines.scratch + v * key_steps(kv.head_dim) * kTileBytes;
    lines.at[v] = line;
    const std::byte* token[16];
    const std::byte* scales[16];
    for (std::int32_t i = 0; i < 16; ++i) {  // past the sequence there may be no block; those columns are not used
      const std::int32_t wanted = source.chunk + v * 16 + i;
      const std::int32_t position = wanted < source.end ? wanted : source.end - 1;
      const std::int32_t slot = source.slot(position);
      token[i] = source.at(position) + value_element(kType, kv.head_dim, slot - slot % kPair, 0) * kv_element_bytes(kType);
      scales[i] = source.at(position) + kv.scale_offset + slot * 2;
    }
    for (std::int32_t d = 0; d < key_steps(kv.head_dim) * kKeyDims; d += kKeyDims, line += kTileBytes) {
      __m512i rows[kTileRows];
#pragma GCC unroll 16
      for (std::int32_t i = 0; i < kTileRows; ++i) {
        const auto load = [&](std::int32_t from) {
          return avx512::load_kv<kType>(avx512::first_lanes(kv.head_dim - from), token[i] + from * kBytes, i % kPair != 0);
        };
        __m512 low = load(d);
        __m512 high = load(d + 16);
        if constexpr (kType == KvType::kInt8) {
          const __m512 scale = _mm512_set1_ps(f16_to_float(load_half(scales[i] + d / kKvGroup * kv.block_tokens * 2)));
          low = _mm512_mul_ps(low, scale);
          high = _mm512_mul_ps(high, scale);
        }
        rows[i] = round_to_bf16(low, high);
      }
      avx512::transpose(rows);
#pragma GCC unroll 16
      for (std::int32_t i = 0; i < kTileRows; ++i) _mm512_store_si512(line + i * kTileRowBytes, rows[i]);
    }
  }
}

// The scales of eight positions. Infinities and NaNs become the power of two whose product with any code is a number of bf16, far above
// every f16, so that the row that sees such a value still ends in none.
constexpr float kLargestScale = 0x1p121F;
struct EightScales {
  alignas(32) float of[8];

  static EightScales load(const std::byte* from) {
    const __m256 scales = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    EightScales finite;
    _mm256_store_ps(finite.of, _mm256_range_ps(scales, _mm256_set1_ps(kLargestScale), kSmallerMagnitude));
    return finite;
  }
  Scales pair(std::int32_t first) const { return {_mm512_set1_ps(of[first]), _mm512_set1_ps(of[first + 1])}; }
};

// Lines for two positions next to each other, of dimensions [begin, end); one that is not there is zeros.
template <KvType kType>
static inline void expand_value_pair(const std::byte* row, std::int64_t row_bytes, bool even, bool odd, std::int32_t begin,
                                     std::int32_t end, const Scales& scales, std::byte* line) {
  constexpr std::int64_t kBytes = kv_element_bytes(kType) * kv_pair(kType);
  std::int32_t d = begin;
  row += begin * kBytes;
  line += begin / 16 * kTileRowBytes;
  if constexpr (kType == KvType::kBF16) {
    for (; d < end; d += 16, row += 16 * kBytes, line += kTileRowBytes)
      _mm512_store_si512(line, keep_elements(_mm512_maskz_loadu_epi32(avx512::first_lanes(end - d), row), even, odd));
  } else {
    if (even && odd) {
#pragma GCC unroll 4
      for (; d + 16 <= end; d += 16, row += 16 * kBytes, line += kTileRowBytes)
        _mm512_store_si512(line, line_of<true>(load_row<kType>(row), load_row<kType>(row + row_bytes), scales));
    }
    for (; d < end; d += 16, row += 16 * kBytes, line += kTileRowBytes) {
      const __mmask16 mask = avx512::first_lanes(end - d);
      const Row<kType> low = even ? load_row<kType>(mask, row) : Row<kType>{};
      const Row<kType> high = odd ? load_row<kType>(mask, row + row_bytes) : Row<kType>{};
      _mm512_store_si512(line, line_of<true>(low, high, scales));
    }
  }
}

// Which of the eight positions from `first` on are seen, a bit for each.
static inline unsigned seen_of_eight(const ChunkSource& source, std::int32_t first) {
  const auto within = [&](std::int32_t begin, std::int32_t end) {
    return static_cast<unsigned>(avx512::first_lanes(end - first) & ~avx512::first_lanes(begin - first)) & 0xFFU;
  };
  return within(source.begin, source.end) & ~within(source.gap_begin, source.gap_end);
}

// Lines for the 16 positions of a vector of values; those that nobody sees become zeros.
template <KvType kType>
static inline void expand_value_vector(const ChunkSource& source, std::int32_t vector, std::int64_t stride, std::byte* lines) {
  const KvLayer& kv = source.kv;
  const std::int32_t head_dim = kv.head_dim;
  const std::int64_t row_bytes = head_dim * kv_element_bytes(kType);
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const std::int64_t scale_bytes = static_cast<std::int64_t>(kv.scale_offset) + value_scale_step(kv);
  const bool in_place = holds_tiles(kv);                                                                        // others are
  for (std::int32_t eight = source.chunk + vector * 16; eight < source.chunk + vector * 16 + 16; eight += 8) {  // a block holds all eight
    const unsigned present = seen_of_eight(source, eight);
    const std::int32_t held = present != 0 ? eight : source.begin / 8 * 8;  // there may be no block for the others
    const std::int64_t offset = static_cast<std::int64_t>(kv.value_offset) + source.slot(held) * row_bytes;
    const std::byte* rows = source.at(held) + offset;
    const std::byte* scales = source.at(held) + scale_bytes + source.slot(held) * 2;
    if (!in_place) {
      const std::byte* ahead = ahead_of(source, held) + offset;
      for (std::int64_t i = 0; i < 8 * row_bytes; i += 64) fetch(ahead + i);
    }
    for (std::int32_t d = 0; d < head_dim; d += group, scales += kv.block_tokens * 2) {
      const EightScales own = kType == KvType::kInt8 ? EightScales::load(scales) : EightScales{};
      for (std::int32_t t = 0; t < 8; t += 2) {
        const Scales both = kType == KvType::kInt8 ? own.pair(t) : Scales{};
        expand_value_pair<kType>(rows + t * row_bytes, row_bytes, (present >> t & 1) != 0, (present >> t & 2) != 0, d,
                                 head_dim - d < group ? head_dim : d + group, both, lines + t / 2 * stride);
      }
    }
    lines += 4 * stride;
  }
}

// In scratch: [vectors, kValueLines, value_vectors, 64 bytes].
template <KvType kType>
static void expand_values(const ChunkSource& source, Lines& lines) {
  lines.stride = value_vectors(source.kv.head_dim) * kTileRowBytes;
  for (std::int32_t v = source.first_vector(); v < source.last_vector(); ++v) {
    std::byte* line = lines.scratch + v * kValueLines * lines.stride;
    expand_value_vector<kType>(source, v, lines.stride, line);
    lines.at[v] = line;
  }
}

template <KvType kType>
static inline void expand_typed(const ChunkSource& source, Lines& keys, Lines& values) {
  if (source.kv.latent) {
    expand_latent_keys<kType>(source, keys);
  } else {
    source.kv.block_tokens < 16 ? expand_keys<kType, true>(source, keys) : expand_keys<kType, false>(source, keys);
  }
  expand_values<kType>(source, values);
}

// Lines as the pool has them. Positions of which no query sees anything may hold anything, so values among them are copied without these.
static inline void find_lines(const ChunkSource& source, Lines& keys, Lines& values) {
  const KvLayer& kv = source.kv;
  keys.stride = kv.block_tokens * 4;
  values.stride = kv.head_dim * 4;
  for (std::int32_t v = source.first_vector(); v < source.last_vector(); ++v) {
    const std::int32_t position = source.chunk + v * 16;
    const std::byte* head = source.at(position);
    const std::byte* ahead = ahead_of(source, position);
    const std::int64_t key = source.slot(position) * 4;
    const std::int64_t value = static_cast<std::int64_t>(kv.value_offset) + source.slot(position) / 2 * values.stride;
    keys.at[v] = head + key;
    keys.ahead[v] = ahead + (kv.latent ? value : key);
    values.at[v] = head + value;
    values.ahead[v] = ahead + value;
    if (source.all_seen(position, position + 16)) continue;
    std::byte* line = values.scratch + v * kValueLines * values.stride;
    expand_value_vector<KvType::kBF16>(source, v, values.stride, line);
    values.at[v] = line;
  }
  if (kv.latent) expand_latent_keys<KvType::kBF16>(source, keys);
}

static inline void expand(const ChunkSource& source, Lines& keys, Lines& values) {
  if (holds_tiles(source.kv)) return find_lines(source, keys, values);
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
