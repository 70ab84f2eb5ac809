// Fetching weights before they are wanted. Any address will do. For sources of x86 tiers only; nothing here is a weak symbol.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Fetches 64-byte lines, into the first-level cache by _MM_HINT_T0 and into the second by _MM_HINT_T1; returns what follows them.
template <_mm_hint kInto>
[[gnu::always_inline]] static inline const std::byte* prefetch_lines(const std::byte* from, std::int64_t lines) {
  for (std::int64_t line = 0; line < lines; ++line) _mm_prefetch(reinterpret_cast<const char*>(from + line * 64), kInto);
  return from + lines * 64;
}

}  // namespace braid::kernels
