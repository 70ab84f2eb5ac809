// What the composition root decides about the disk tier.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace braid::store {

// Unix seconds.
std::uint64_t wall_clock();

// Bytes of the disk that a folder lies on.
struct DiskSpace {
  std::uint64_t free = 0;  // for us
  std::uint64_t total = 0;
};
// Where the system does not tell there is no end of it. Any thread.
DiskSpace disk_space(const std::string& directory);

struct StoreOptions {
  std::string directory;
  std::uint64_t limit_bytes = 50'000'000'000;          // of all records; less where the disk has less
  std::chrono::seconds ttl = std::chrono::days(7);     // age at which a record is no longer used
  std::string identity;                                // see Origin
  std::size_t payload_bytes = 0;                       // of one block
  std::int32_t most_tokens = 0;                        // of one sequence
  std::size_t buffer_memory = std::size_t{64} << 20U;  // host memory for records on their way, but
  std::size_t least_buffers = 4;                       // so many at least
  std::chrono::milliseconds scan_patience{2000};       // how long opening may look through what is there; the rest is done meanwhile
  std::chrono::seconds write_pause{30};                // after a write has failed
  std::function<std::uint64_t()> clock = wall_clock;
  std::function<DiskSpace(const std::string&)> space = disk_space;
};

}  // namespace braid::store
