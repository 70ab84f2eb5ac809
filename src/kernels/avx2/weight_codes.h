// Codes and scales of packed panels in vectors of 8 outputs: `half` 0 or 1 of a panel. Internal linkage only.
#pragma once

#include "kernels/avx2/simd.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx2 {

// Bits of group g from its plane's vector, moved up by `up` within each byte.
template <int kBits>
[[gnu::always_inline]] static inline __m256i plane_bits(__m256i packed, int g, int up) {
  if constexpr (kBits == 8) {
    return packed;
  } else {
    const int shift = g / kBits * kBits - up;
    const __m256i moved = shift > 0 ? _mm256_srli_epi16(packed, shift) : shift < 0 ? _mm256_slli_epi16(packed, -shift) : packed;
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(((1 << kBits) - 1) << up)));
  }
}

// The codes of group g of a K block.
template <CodeForm kForm>
[[gnu::always_inline]] static inline __m256i group_codes(const std::byte* block, int g, int half, __m256i table) {
  const auto plane = [&](int line) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(block + line * 64 + half * 32)); };
  __m256i codes = plane_bits<kForm.low_bits>(plane(g % kForm.low_bits), g, 0);
  if constexpr (kForm.table) codes = _mm256_shuffle_epi8(table, codes);
  if constexpr (kForm.high_bits != 0) {
    codes = _mm256_or_si256(codes, plane_bits<kForm.high_bits>(plane(kForm.low_bits + g % kForm.high_bits), g, kForm.low_bits));
  }
  return codes;
}

// The scales of a K block, which lie at `scales`, or its minimums (`kind` 0 or 1), where one fits 32 values.
static inline __m256 load_scales(ScaleForm form, const std::byte* scales, int kind, int half) {
  if (form == ScaleForm::kF16) return load_halves(scales + kind * kPanel * 2 + half * 16);
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + half * 16));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// The f16 scales or minimums of a group, in ScaleForm::kSub.
static inline __m256 load_supers(const std::byte* group, int kind, int half) { return load_halves(group + kind * kPanel * 2 + half * 16); }

// The int8 scales or minimums of one part of a K block, whose scales lie at `scales`.
template <int kParts>
[[gnu::always_inline]] static inline __m256i load_subs(const PanelLayout& layout, const std::byte* scales, int part, int kind, int half) {
  const bool nibbles = kParts == 2 && layout.nibbles;
  const std::byte* subs = scales + (nibbles ? part : kind * kParts + part) * kPanel + half * 8;
  if (nibbles) {
    const __m256i both = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(subs)));
    return kind == 0 ? _mm256_and_si256(both, _mm256_set1_epi32(15)) : _mm256_srli_epi32(both, 4);
  }
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(subs)));
}

// The minimums of parts 2 * pair and 2 * pair + 1 of the group that begins at block `begin`, side by side as int16.
template <int kParts>
[[gnu::always_inline]] static inline __m256i load_minimum_pair(const PanelLayout& layout, const std::byte* panel, std::int64_t begin,
                                                               int pair, int half) {
  const std::byte* scales = scales_at(layout, panel, begin);
  const __m256i first = load_subs<kParts>(layout, scales + pair * 2 / kParts * layout.block_scales, 0, 1, half);
  const __m256i second = load_subs<kParts>(layout, scales + (pair * 2 + 1) / kParts * layout.block_scales, kParts - 1, 1, half);
  return _mm256_or_si256(first, _mm256_slli_epi32(second, 16));
}

}  // namespace braid::kernels::avx2
