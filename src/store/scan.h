// What a segment holds, found from the headers of its records alone.
#pragma once

#include "store/record.h"

#include <cstdint>
#include <vector>

namespace braid::store {

struct ScannedRecord {
  cache::PrefixKey key;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t written_at = 0;
};

struct Scan {
  std::vector<ScannedRecord> records;
  std::uint64_t file_bytes = 0;
  // Why it stopped before the end of the file: a record that was being written when a process died, or damage. 0 bytes: it did not.
  std::uint64_t unreadable_bytes = 0;
  int error = 0;  // an errno of the system, or 0
};

// Records follow one another, so the first header that is none hides what may lie behind it.
Scan scan_segment(int file);

}  // namespace braid::store
