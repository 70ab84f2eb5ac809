#include "model/drafting/mapped_text.h"

#include <algorithm>

namespace braid::model {

std::span<const TokenId> MappedText::map(std::span<const TokenId> text, const TokenMap& map) {
  const bool goes_on = large_.size() <= text.size() && std::ranges::equal(large_, text.first(large_.size()));
  if (!goes_on) *this = {};
  large_.assign(text.begin(), text.end());
  small_.resize(closed_small_);
  if (text.size() - closed_ > 2 * kOpen) {
    map.to_small(text.subspan(closed_, text.size() - kOpen - closed_), small_);
    closed_ = text.size() - kOpen;
    closed_small_ = small_.size();
  }
  map.to_small(text.subspan(closed_), small_);
  return small_;
}

}  // namespace braid::model
