// 16 vectors of 16 elements of 32 bits, their rows as columns. Internal linkage only.
#pragma once

#include <immintrin.h>

namespace braid::kernels::avx512 {

static inline void transpose(__m512i (&rows)[16]) {
  __m512i pairs[16];  // of neighbouring rows, two columns in each quarter
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  __m512i fours[16];  // of four rows, a column in each quarter
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i low_even = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0xDD);
    const __m512i high_even = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0xDD);
    rows[i] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(low_even, high_even, 0xDD);
    rows[i + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xDD);
  }
}

}  // namespace braid::kernels::avx512
