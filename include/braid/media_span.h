// Where a sequence's tokens stand for something else than text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace braid {

// Tokens in a row whose vectors come from one image (or sound, or the like) and not from the tokens themselves.
struct MediaSpan {
  std::int32_t first = 0;                 // position of its first token
  std::int32_t count = 0;                 // of its tokens, at least 1
  std::array<std::uint64_t, 2> digest{};  // of all that these vectors follow from: what it shows, and how it was prepared

  bool operator==(const MediaSpan&) const = default;
};

// How the vectors of a span lie in their picture, where the model's rotary positions follow that: row by row, one for each of its tokens. No
// columns: they lie one after the other, as text does.
struct MediaGrid {
  std::int32_t rows = 0;
  std::int32_t columns = 0;

  // How much further text goes on behind the span than its tokens would say: not more than 0.
  std::int32_t shift() const { return columns == 0 ? 0 : std::max(rows, columns) - rows * columns; }
};

// Vectors of the model's width, [tokens, width], each in the place of a token's embedding as the model has scaled it; where the model's first
// layers add more of them, [tokens, 1 + layers, width]. Shared with the steps that read them.
using MediaVectors = std::shared_ptr<const std::vector<float>>;

// Those of a span: from the `begin`-th token's of them on.
struct SpanVectors {
  MediaVectors vectors;
  std::int64_t begin = 0;
};

}  // namespace braid
