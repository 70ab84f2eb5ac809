// Memory that is wanted soon, on its way into the caches meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

// The lines of [begin, begin + bytes). Any address will do.
inline void prefetch_lines(const void* begin, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  for (std::size_t at = 0; at + 1 < bytes; at += kLine) __builtin_prefetch(reinterpret_cast<const void*>(address + at));
  __builtin_prefetch(reinterpret_cast<const void*>(address + bytes - 1));
  asm volatile("");  // or GCC 12 takes a function that does nothing else for one without any effect, and drops its calls
}

// Likewise of any address, to be written: another core that has read or written them lets go of them meanwhile. A processor
// without such an instruction does nothing.
inline void prefetch_lines_to_write(void* begin, std::size_t bytes) {
#if defined(__x86_64__)
  constexpr std::size_t kLine = 64;
  auto* const address = static_cast<std::byte*>(begin);
  for (std::size_t at = 0; at + 1 < bytes; at += kLine) asm volatile("prefetchw %0" : : "m"(address[at]));
  asm volatile("prefetchw %0" : : "m"(address[bytes - 1]));
#else
  prefetch_lines(begin, bytes);
#endif
}

}  // namespace braid
