// Keys and values of each type as vectors of 16 floats; of kInt8 the codes, of kBF16 the first elements of 16 pairs, or with `odd` the
// second. Internal linkage only.
#pragma once

#include "kernels/avx512/simd.h"
#include "kernels/kv_order.h"

namespace braid::kernels::avx512 {

static inline __m512 half_of_pairs(__m512i pairs, bool odd) {
  const __m512i high = _mm512_sll_epi32(pairs, _mm_cvtsi32_si128(odd ? 0 : 16));
  return _mm512_castsi512_ps(_mm512_and_si512(high, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

static inline __m512 widen_codes(__m128i codes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)); }

template <KvType kType>
static inline __m512 load_kv(const std::byte* from, bool odd) {
  if constexpr (kType == KvType::kF32) return _mm512_loadu_ps(from);
  if constexpr (kType == KvType::kF16) return load_halves(from);
  if constexpr (kType == KvType::kBF16) return half_of_pairs(_mm512_loadu_si512(from), odd);
  return widen_codes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// Lanes out of the mask are 0, and their bytes are not touched.
template <KvType kType>
static inline __m512 load_kv(__mmask16 mask, const std::byte* from, bool odd) {
  if constexpr (kType == KvType::kF32) return _mm512_maskz_loadu_ps(mask, from);
  if constexpr (kType == KvType::kF16) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
  if constexpr (kType == KvType::kBF16) return half_of_pairs(_mm512_maskz_loadu_epi32(mask, from), odd);
  return widen_codes(_mm_maskz_loadu_epi8(mask, from));
}

// Lanes 0 to 7 from one place and 8 to 15 from another.
template <KvType kType>
static inline __m512 load_kv(const std::byte* low, const std::byte* high, bool odd) {
  const auto whole = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  const auto half = [](const std::byte* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); };
  if constexpr (kType == KvType::kF32) {
    const __m256 low_half = _mm256_loadu_ps(reinterpret_cast<const float*>(low));
    const __m256 high_half = _mm256_loadu_ps(reinterpret_cast<const float*>(high));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low_half), high_half, 1);
  } else if constexpr (kType == KvType::kInt8) {
    return widen_codes(_mm_unpacklo_epi64(half(low), half(high)));
  } else if constexpr (kType == KvType::kF16) {
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(whole(low)), whole(high), 1));
  } else {
    const auto pairs = [](const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); };
    return half_of_pairs(_mm512_inserti64x4(_mm512_castsi256_si512(pairs(low)), pairs(high), 1), odd);
  }
}

}  // namespace braid::kernels::avx512
