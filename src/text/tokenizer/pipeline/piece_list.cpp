#include "text/tokenizer/pipeline/piece_list.h"

#include <algorithm>

namespace braid::text {
namespace {

// Walks over the spans in their order or from the end, and joins a span to the one before it on that way when `joins` says so.
template <class Iterator, class Joins>
std::vector<TextSpan> join_spans(Iterator first, Iterator last, Joins joins) {
  std::vector<TextSpan> joined;
  bool previous = false;
  for (; first != last; ++first) {
    if (!joined.empty() && joins(first->is_match, previous)) {
      joined.back().begin = std::min(joined.back().begin, first->begin);
      joined.back().end = std::max(joined.back().end, first->end);
    } else {
      joined.push_back(*first);
    }
    previous = first->is_match;
  }
  return joined;
}

}  // namespace

void apply_behavior(SplitBehavior behavior, std::vector<TextSpan>& spans) {
  const auto lone_match = [](bool now, bool before) { return now && !before; };
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return;
    case SplitBehavior::kRemoved:
      std::erase_if(spans, [](const TextSpan& span) { return span.is_match; });
      return;
    case SplitBehavior::kContiguous:
      spans = join_spans(spans.begin(), spans.end(), [](bool now, bool before) { return now == before; });
      return;
    case SplitBehavior::kMergedWithPrevious:
      spans = join_spans(spans.begin(), spans.end(), lone_match);
      return;
    case SplitBehavior::kMergedWithNext:
      spans = join_spans(spans.rbegin(), spans.rend(), lone_match);
      std::reverse(spans.begin(), spans.end());
      return;
  }
}

}  // namespace braid::text
