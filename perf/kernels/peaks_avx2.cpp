#include "perf/kernels/peaks.h"

#include <immintrin.h>

namespace braid::kernels::perf {

template <int kStretches>
std::int64_t read_bytes_avx2(const std::byte* data, std::int64_t bytes) {
  __m256i sum[kStretches][2];
  for (auto& chains : sum) chains[0] = chains[1] = _mm256_setzero_si256();
  const std::int64_t stretch = bytes / kStretches / 64 * 64;
  for (std::int64_t i = 0; i < stretch; i += 64) {
#pragma GCC unroll 4
    for (int part = 0; part < kStretches; ++part) {
      const std::byte* from = data + part * stretch + i;
      _mm_prefetch(reinterpret_cast<const char*>(from + kReadAhead), _MM_HINT_T0);
      for (int half = 0; half < 2; ++half)
        sum[part][half] = _mm256_xor_si256(sum[part][half], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + half * 32)));
    }
  }
  __m256i all = _mm256_setzero_si256();
  for (const auto& chains : sum) all = _mm256_xor_si256(all, _mm256_xor_si256(chains[0], chains[1]));
  return _mm256_extract_epi64(all, 0) ^ _mm256_extract_epi64(all, 1) ^ _mm256_extract_epi64(all, 2) ^ _mm256_extract_epi64(all, 3);
}
template std::int64_t read_bytes_avx2<1>(const std::byte*, std::int64_t);
template std::int64_t read_bytes_avx2<4>(const std::byte*, std::int64_t);

}  // namespace braid::kernels::perf
