// A sequence of a large model's tokens as those of a small one.
#pragma once

#include "model/drafting/token_map.h"

#include <cstddef>
#include <span>
#include <vector>

namespace braid::model {

// Its end is mapped anew as it grows, because words are made of other tokens there; what is further back stays as it is.
class MappedText {
 public:
  // The small model's tokens for `text`, which goes on with what it was the last time, or is another one.
  std::span<const TokenId> map(std::span<const TokenId> text, const TokenMap& map);

 private:
  static constexpr std::size_t kOpen = 8;  // tokens at the end that are mapped anew

  std::vector<TokenId> large_;
  std::vector<TokenId> small_;
  std::size_t closed_ = 0;        // of large_, mapped for good
  std::size_t closed_small_ = 0;  // to so many of small_
};

}  // namespace braid::model
