#include "model/drafting/match_finder.h"

#include <algorithm>
#include <bit>

namespace braid::model {
namespace {

constexpr std::size_t kLeastBuckets = 256;
constexpr std::size_t kKeptTokens = 32'768;  // a longer text gives its memory back

}  // namespace

void MatchFinder::clear() {
  if (text_.capacity() > kKeptTokens) {
    *this = {};
    return;
  }
  text_.clear();
  before_.clear();
  last_.clear();
}

std::size_t MatchFinder::bucket(std::size_t end) const {
  std::uint64_t hash = 0;
  for (std::size_t i = end - kGram; i < end; ++i) hash = (hash + static_cast<std::uint32_t>(text_[i])) * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(hash >> 32U) & (last_.size() - 1);
}

void MatchFinder::grow() {
  last_.assign(std::bit_ceil(std::max(kLeastBuckets, text_.size() * 2)), kNone);
  before_.clear();
}

// before_[i] belongs to the gram that ends before i + kGram.
void MatchFinder::index() {
  if (text_.size() > last_.size()) grow();
  while (before_.size() + kGram <= text_.size()) {
    const std::size_t end = before_.size() + kGram;
    std::int32_t& last = last_[bucket(end)];
    before_.push_back(last);
    last = static_cast<std::int32_t>(end);
  }
}

std::size_t MatchFinder::common_before(std::size_t place) const {
  const std::size_t most = std::min(place, kMostCommon);
  std::size_t common = 0;
  while (common < most && text_[place - 1 - common] == text_[text_.size() - 1 - common]) ++common;
  return common;
}

MatchFinder::Match MatchFinder::find() {
  if (text_.size() <= kGram) return {};
  index();
  Match best;
  std::int32_t place = before_.back();  // the gram at the end is itself the last in its bucket
  for (int tries = 0; tries < kTries && place != kNone && best.common < kMostCommon; ++tries) {
    const auto end = static_cast<std::size_t>(place);
    if (const std::size_t common = common_before(end); common >= kGram && common > best.common) best = {end, common};
    place = before_[end - kGram];
  }
  return best;
}

}  // namespace braid::model
