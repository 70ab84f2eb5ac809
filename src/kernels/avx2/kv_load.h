// Keys and values of each type as vectors of 8 floats; of kInt8 the codes. Internal linkage only.
#pragma once

#include <kernels/avx2/simd.h>
#include <kernels/kernel_table.h>

namespace braid::kernels::avx2 {

template <KvType kType>
constexpr std::int64_t kKvBytes = kType == KvType::kF32 ? 4 : kType == KvType::kInt8 ? 1 : 2;

template <KvType kType>
static inline __m256 load_kv(const std::byte* from) {
  if constexpr (kType == KvType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  if constexpr (kType == KvType::kF16) return load_halves(from);
  if constexpr (kType == KvType::kBF16) {
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

}  // namespace braid::kernels::avx2
