// What a kernel tells the caches: lines that are wanted soon, and results that are not. Nothing here is a weak symbol, because sources of
// wide ISAs include this file.
#pragma once

#include "kernels/kernel_table.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Where to, as the locality of __builtin_prefetch.
enum CacheLevel : int { kFirstLevel = 3, kSecondLevel = 2 };

// Fetches 64-byte lines, at any address; returns what follows them.
template <CacheLevel kInto>
[[gnu::always_inline]] static inline const std::byte* prefetch_lines(const std::byte* from, std::int64_t lines) {
  for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(from + line * 64, 0, kInto);
  return from + lines * 64;
}

// What comes next, fetched by a few lines in each of many turns: in order, or four stretches of it side by side (KernelTable::side_by_side).
struct NextLines {
  const std::byte* from = nullptr;
  int shift = 0;             // of a line's number to that within its stretch
  std::int64_t stretch = 0;  // lines of one
  std::int64_t of_turn = 0;  // lines of a turn

  NextLines() = default;
  [[gnu::always_inline]] inline NextLines(const std::byte* first, std::int64_t bytes, std::int64_t turns, bool side_by_side)
      : from(first), shift(side_by_side ? 2 : 0), of_turn((bytes + 64 * turns - 1) / (64 * turns)) {
    stretch = (of_turn * turns + (std::int64_t{1} << shift) - 1) >> shift;
  }

  template <CacheLevel kInto>
  [[gnu::always_inline]] inline void fetch(std::int64_t turn) const {
    const std::int64_t mask = (std::int64_t{1} << shift) - 1;
    for (std::int64_t line = turn * of_turn; line < (turn + 1) * of_turn; ++line)
      __builtin_prefetch(from + ((line & mask) * stretch + (line >> shift)) * 64, 0, kInto);
  }
};

// Fetches a line that is about to be written, so that no other core has it any longer. Where the compiler may use PREFETCHW (src/kernels/CMakeLists.txt):
// a plain fetch leaves the line shared with whoever read it last, and the write waits for that core.
[[gnu::always_inline]] static inline void prefetch_for_write(const float* line) { __builtin_prefetch(line, 1); }

// Whether results go past the caches. Who writes them so ends with a store fence: other threads read them.
static inline bool writes_past_caches(const MatmulArgs& args) {
  return args.past_caches && !args.accumulate && args.out_stride % kPanel == 0 && reinterpret_cast<std::uintptr_t>(args.out) % 64 == 0;
}

}  // namespace braid::kernels
