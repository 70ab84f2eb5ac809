// What a token sees of its sequence.
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::step {

// Which positions t <= p a token at position p attends to: t > p - window or t < sink. Without a window all of them.
struct Visibility {
  std::int32_t window = 0;  // positions, the token's own the last one; 0: no window
  std::int32_t sink = 0;    // leading positions that stay visible

  bool operator==(const Visibility&) const = default;

  // Blocks [first, last) of a sequence are invisible to the token at `position` and to every later one; none when first >= last.
  // Their entries in a block table may be -1.
  struct Blocks {
    std::int32_t first = 0;
    std::int32_t last = 0;
  };
  Blocks invisible(std::int32_t position, std::int32_t block_tokens) const {
    if (window <= 0) return {};
    return {(sink + block_tokens - 1) / block_tokens, std::max(0, position + 1 - window) / block_tokens};
  }
};

}  // namespace braid::step
