#include "store/segment_index.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace braid::store {

Segment& SegmentIndex::add_segment(std::uint32_t number, SharedFile file) {
  const auto place = std::ranges::find_if(segments_, [&](const Segment& segment) { return segment.number > number; });
  return *segments_.insert(place, {number, std::move(file), 0, 0, {}});
}

void SegmentIndex::add_record(Segment& segment, const ScannedRecord& record) {
  assert(record.offset == segment.bytes);
  segment.bytes += record.bytes;
  bytes_ += record.bytes;
  segment.newest = std::max(segment.newest, record.written_at);
  const auto [at, is_new] = locations_.try_emplace(record.key);
  if (!is_new && at->second.segment->number > segment.number) return;
  at->second = {&segment, record.offset, record.bytes, record.written_at};
  segment.keys.push_back(record.key);
}

void SegmentIndex::add_waste(Segment& segment, std::uint64_t bytes) {
  segment.bytes += bytes;
  bytes_ += bytes;
}

const SegmentIndex::Location* SegmentIndex::find(const cache::PrefixKey& key) const {
  const auto found = locations_.find(key);
  return found != locations_.end() ? &found->second : nullptr;
}

const Segment& SegmentIndex::smallest_but(const Segment* other) const {
  return *std::ranges::min_element(
      segments_, {}, [&](const Segment& segment) { return &segment == other ? std::numeric_limits<std::uint64_t>::max() : segment.bytes; });
}

Segment* SegmentIndex::after(const Segment& segment) {
  auto at = std::ranges::find_if(segments_, [&](const Segment& other) { return &other == &segment; });
  return ++at != segments_.end() ? &*at : nullptr;
}

void SegmentIndex::drop(const Segment& segment) {
  for (const cache::PrefixKey& key : segment.keys) {
    const auto found = locations_.find(key);
    if (found != locations_.end() && found->second.segment == &segment) locations_.erase(found);
  }
  bytes_ -= segment.bytes;
  segments_.remove_if([&](const Segment& other) { return &other == &segment; });
}

}  // namespace braid::store
