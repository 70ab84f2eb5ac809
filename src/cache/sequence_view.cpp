#include "cache/sequence_view.h"

#include <algorithm>
#include <limits>

namespace braid::cache {

namespace {

// Where the first of two lists of media differs from the second; beyond every position when they are equal.
std::int32_t first_difference(std::span<const MediaSpan> one, std::span<const MediaSpan> other) {
  constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::max();
  const auto [a, b] = std::ranges::mismatch(one, other);
  const bool has_a = a != one.end();
  const bool has_b = b != other.end();
  if (has_a && has_b && a->first == b->first && a->digest == b->digest) return a->first + std::min(a->count, b->count);
  return std::min(has_a ? a->first : kNowhere, has_b ? b->first : kNowhere);
}

}  // namespace

std::int32_t common_length(const SequenceView& one, const SequenceView& other) {
  if (one.scope != other.scope) return 0;
  const auto same = static_cast<std::int32_t>(std::ranges::mismatch(one.tokens, other.tokens).in1 - one.tokens.begin());
  return std::clamp(first_difference(one.media, other.media), 0, same);
}

void append_media(std::span<const MediaSpan> media, std::int32_t begin, std::int32_t end, std::vector<MediaSpan>& parts) {
  const auto ends_before = [begin](const MediaSpan& span) { return span.first + span.count <= begin; };
  for (auto at = std::ranges::partition_point(media, ends_before); at != media.end() && at->first < end; ++at)
    parts.push_back({at->first - begin, std::min(at->count, end - at->first), at->digest});
}

}  // namespace braid::cache
