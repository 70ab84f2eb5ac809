// Fetching weights before they are wanted. Any address will do. Nothing here is a weak symbol, because sources of wide ISAs include this file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Where to, as the locality of __builtin_prefetch.
enum CacheLevel : int { kFirstLevel = 3, kSecondLevel = 2 };

// Fetches 64-byte lines; returns what follows them.
template <CacheLevel kInto>
[[gnu::always_inline]] static inline const std::byte* prefetch_lines(const std::byte* from, std::int64_t lines) {
  for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(from + line * 64, 0, kInto);
  return from + lines * 64;
}

}  // namespace braid::kernels
