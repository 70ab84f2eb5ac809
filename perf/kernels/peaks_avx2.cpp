#include <immintrin.h>

#include "peaks.h"

namespace braid::kernels::perf {

std::int64_t read_bytes_avx2(const std::byte* data, std::int64_t bytes) {
  __m256i sum[8];
  for (auto& chain : sum) chain = _mm256_setzero_si256();
  for (std::int64_t i = 0; i + 256 <= bytes; i += 256) {
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
      if (part % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(data + i + part * 32 + 4096), _MM_HINT_T0);
      sum[part] = _mm256_xor_si256(sum[part], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + part * 32)));
    }
  }
  for (int part = 1; part < 8; ++part) sum[0] = _mm256_xor_si256(sum[0], sum[part]);
  return _mm256_extract_epi64(sum[0], 0) ^ _mm256_extract_epi64(sum[0], 1) ^ _mm256_extract_epi64(sum[0], 2) ^ _mm256_extract_epi64(sum[0], 3);
}

}  // namespace braid::kernels::perf
