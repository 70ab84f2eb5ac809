// Where a sequence's tokens stand for something else than text.
#pragma once

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

// Vectors of the model's width, [tokens, width], each in the place of a token's embedding as the model has scaled it. Shared with the steps
// that read them.
using MediaVectors = std::shared_ptr<const std::vector<float>>;

}  // namespace braid
