// Rounding to bf16, which the tile products of bf16 take. The instruction makes zeros of subnormal floats, as they do.
#pragma once

#include <immintrin.h>

namespace braid::kernels::amx {

// bf16 of `low` and then of `high`, half to even.
static inline __m512i round_to_bf16(__m512 low, __m512 high) {
  const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
  __m512i bits;
  __builtin_memcpy(&bits, &rounded, sizeof(bits));
  return bits;
}

}  // namespace braid::kernels::amx
