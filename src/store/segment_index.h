// Which record lies where, and how much there is of them: metadata only, rebuilt from the records at each start.
#pragma once

#include "store/directory.h"
#include "store/scan.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace braid::store {

// A file of records, oldest first.
struct Segment {
  std::uint32_t number = 0;
  SharedFile file;
  std::uint64_t bytes = 0;
  std::uint64_t newest = 0;  // Unix seconds of its last record
  std::vector<cache::PrefixKey> keys;
};

// Loop only. Segments come and go as wholes; of two records with one key the newer segment's counts.
class SegmentIndex {
 public:
  struct Location {
    Segment* segment = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t written_at = 0;
  };

  // In order of numbers, wherever it comes. The segment stays where it is until it is dropped.
  Segment& add_segment(std::uint32_t number, SharedFile file);
  // Behind the segment's last record.
  void add_record(Segment& segment, const ScannedRecord& record);
  // Bytes at the segment's end that hold no record.
  void add_waste(Segment& segment, std::uint64_t bytes);

  // Null when unknown.
  const Location* find(const cache::PrefixKey& key) const;
  void erase(const cache::PrefixKey& key) { locations_.erase(key); }

  // The segment that was begun first; null when there is none.
  Segment* oldest() { return segments_.empty() ? nullptr : &segments_.front(); }
  // Of several equal ones the oldest. There are two at least.
  const Segment& smallest_but(const Segment* other) const;
  // The one begun next; null after the last.
  Segment* after(const Segment& segment);
  const std::list<Segment>& segments() const { return segments_; }
  // Forgets a segment with all its records.
  void drop(const Segment& segment);

  std::size_t records() const { return locations_.size(); }
  std::uint64_t bytes() const { return bytes_; }  // of all segments

 private:
  struct Hash {
    std::size_t operator()(const cache::PrefixKey& key) const { return key.low; }
  };

  std::list<Segment> segments_;
  std::unordered_map<cache::PrefixKey, Location, Hash> locations_;
  std::uint64_t bytes_ = 0;
};

}  // namespace braid::store
