// Keys and values of each type as vectors of 8 floats; of kInt8 the codes, of kBF16 the first elements of 8 pairs, or with `odd` the
// second. Internal linkage only.
#pragma once

#include "kernels/avx2/simd.h"
#include "kernels/kv_order.h"

namespace braid::kernels::avx2 {

template <KvType kType>
static inline __m256 load_kv(const std::byte* from, bool odd) {
  if constexpr (kType == KvType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  if constexpr (kType == KvType::kF16) return load_halves(from);
  if constexpr (kType == KvType::kBF16) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i high = _mm256_sll_epi32(pairs, _mm_cvtsi32_si128(odd ? 0 : 16));
    return _mm256_castsi256_ps(_mm256_and_si256(high, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
  }
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

// `count` values are there, fewer than 8 at the end of a head.
template <KvType kType, bool kPartial>
static inline __m256 load_values(const std::byte* from, std::int64_t count, bool odd) {
  if constexpr (!kPartial) return load_kv<kType>(from, odd);
  constexpr std::int64_t kBytes = kv_element_bytes(kType) * kv_pair(kType);
  std::byte values[8 * kBytes] = {};
  __builtin_memcpy(values, from, static_cast<std::size_t>(count * kBytes));
  return load_kv<kType>(values, odd);
}

}  // namespace braid::kernels::avx2
