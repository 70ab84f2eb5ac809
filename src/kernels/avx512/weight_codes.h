// Codes and scales of packed panels in vectors of 16 outputs, for the tiers of 512 bits. Internal linkage only.
#pragma once

#include "kernels/avx512/simd.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx512 {

// Bits of group g from its plane's vector, moved up by `up` within each byte.
template <int kBits>
[[gnu::always_inline]] static inline __m512i plane_bits(__m512i packed, int g, int up) {
  if constexpr (kBits == 8) {
    return packed;
  } else {
    const int shift = g / kBits * kBits - up;
    const __m512i moved = shift > 0   ? _mm512_srli_epi16(packed, static_cast<unsigned>(shift))
                          : shift < 0 ? _mm512_slli_epi16(packed, static_cast<unsigned>(-shift))
                                      : packed;
    return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(((1 << kBits) - 1) << up)));
  }
}

// The codes of group g, from the vector of the plane of low bits that holds it.
template <CodeForm kForm>
[[gnu::always_inline]] static inline __m512i group_codes(__m512i low, const std::byte* block, int g, __m512i table) {
  __m512i codes = plane_bits<kForm.low_bits>(low, g, 0);
  if constexpr (kForm.table) codes = _mm512_shuffle_epi8(table, codes);
  if constexpr (kForm.high_bits != 0) {
    const __m512i high = _mm512_load_si512(block + (kForm.low_bits + g % kForm.high_bits) * 64);
    codes = _mm512_or_si512(codes, plane_bits<kForm.high_bits>(high, g, kForm.low_bits));
  }
  return codes;
}

// The scales of a K block, which lie at `scales`, or its minimums (`kind` 0 or 1), where one fits 32 values.
static inline __m512 load_scales(ScaleForm form, const std::byte* scales, int kind) {
  if (form == ScaleForm::kF16) return load_halves(scales + kind * kPanel * 2);
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// The f16 scales or minimums of a group, in ScaleForm::kSub.
static inline __m512 load_supers(const std::byte* group, int kind) { return load_halves(group + kind * kPanel * 2); }

// The int8 scales or minimums of one part of a K block, whose scales lie at `scales`.
template <int kParts>
[[gnu::always_inline]] static inline __m512i load_subs(const PanelLayout& layout, const std::byte* scales, int part, int kind) {
  const std::byte* subs = scales + (kParts == 2 && layout.nibbles ? part : kind * kParts + part) * kPanel;
  if (kParts == 2 && layout.nibbles) {
    const __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(subs)));
    return kind == 0 ? _mm512_and_si512(both, _mm512_set1_epi32(15)) : _mm512_srli_epi32(both, 4);
  }
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(subs)));
}

// The minimums of parts 2 * pair and 2 * pair + 1 of the group that begins at block `begin`, side by side as int16.
template <int kParts>
[[gnu::always_inline]] static inline __m512i load_minimum_pair(const PanelLayout& layout, const std::byte* panel, std::int64_t begin,
                                                               int pair) {
  const std::byte* scales = scales_at(layout, panel, begin);
  const __m512i first = load_subs<kParts>(layout, scales + pair * 2 / kParts * layout.block_scales, 0, 1);
  const __m512i second = load_subs<kParts>(layout, scales + (pair * 2 + 1) / kParts * layout.block_scales, kParts - 1, 1);
  return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}

}  // namespace braid::kernels::avx512
