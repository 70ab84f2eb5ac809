#include "perf/kernels/peaks.h"

#include <immintrin.h>

namespace braid::kernels::perf {
namespace {

constexpr int kChains = 8;

std::int64_t sum_of(const __m256i (&chains)[kChains]) {
  __m256i all = chains[0];
  for (int chain = 1; chain < kChains; ++chain) all = _mm256_add_epi32(all, chains[chain]);
  return _mm256_extract_epi64(all, 0) + _mm256_extract_epi64(all, 1) + _mm256_extract_epi64(all, 2) + _mm256_extract_epi64(all, 3);
}

}  // namespace

std::int64_t multiply_signed_avx2(std::int64_t products) {
  __m256i sum[kChains];
  for (auto& chain : sum) chain = _mm256_setzero_si256();
  __m256i x = _mm256_set1_epi8(3);
  const __m256i weight = _mm256_set1_epi8(-2);
  const __m256i size = _mm256_set1_epi8(2);
  const __m256i ones = _mm256_set1_epi16(1);
  for (std::int64_t i = 0; i < products; i += kChains) {
#pragma GCC unroll 8
    for (int chain = 0; chain < kChains; ++chain) {
      __asm__ volatile("" : "+x"(x));
      const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(x, weight));
      sum[chain] = _mm256_add_epi32(sum[chain], _mm256_madd_epi16(pairs, ones));
    }
  }
  return sum_of(sum);
}

[[gnu::target("avxvnni")]] std::int64_t multiply_vnni_avx2(std::int64_t products) {
  __m256i sum[kChains];
  for (auto& chain : sum) chain = _mm256_setzero_si256();
  __m256i x = _mm256_set1_epi8(3);
  const __m256i weight = _mm256_set1_epi8(2);
  for (std::int64_t i = 0; i < products; i += kChains) {
#pragma GCC unroll 8
    for (int chain = 0; chain < kChains; ++chain) {
      __asm__ volatile("" : "+x"(x));
      sum[chain] = _mm256_dpbusd_avx_epi32(sum[chain], weight, x);
    }
  }
  return sum_of(sum);
}

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
