// Keys and values of each type as vectors of 16 floats; of kInt8 the codes. Internal linkage only.
#pragma once

#include <kernels/avx512/simd.h>
#include <kernels/kernel_table.h>

namespace braid::kernels::avx512 {

template <KvType kType>
constexpr std::int64_t kKvBytes = kType == KvType::kF32 ? 4 : kType == KvType::kInt8 ? 1 : 2;

static inline __m512 widen_bf16(__m256i bits) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)); }

static inline __m512 widen_codes(__m128i codes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)); }

template <KvType kType>
static inline __m512 load_kv(const std::byte* from) {
  if constexpr (kType == KvType::kF32) return _mm512_loadu_ps(from);
  if constexpr (kType == KvType::kF16) return load_halves(from);
  if constexpr (kType == KvType::kBF16) return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  return widen_codes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// Lanes out of the mask are 0, and their bytes are not touched.
template <KvType kType>
static inline __m512 load_kv(__mmask16 mask, const std::byte* from) {
  if constexpr (kType == KvType::kF32) return _mm512_maskz_loadu_ps(mask, from);
  if constexpr (kType == KvType::kF16) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
  if constexpr (kType == KvType::kBF16) return widen_bf16(_mm256_maskz_loadu_epi16(mask, from));
  return widen_codes(_mm_maskz_loadu_epi8(mask, from));
}

// Lanes 0 to 7 from one place and 8 to 15 from another.
template <KvType kType>
static inline __m512 load_kv(const std::byte* low, const std::byte* high) {
  const auto whole = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  const auto half = [](const std::byte* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); };
  if constexpr (kType == KvType::kF32) {
    const __m256 low_half = _mm256_loadu_ps(reinterpret_cast<const float*>(low));
    const __m256 high_half = _mm256_loadu_ps(reinterpret_cast<const float*>(high));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low_half), high_half, 1);
  } else if constexpr (kType == KvType::kInt8) {
    return widen_codes(_mm_unpacklo_epi64(half(low), half(high)));
  } else {
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(whole(low)), whole(high), 1);
    return kType == KvType::kF16 ? _mm512_cvtph_ps(both) : widen_bf16(both);
  }
}

}  // namespace braid::kernels::avx512
