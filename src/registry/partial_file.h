// A blob of which some ranges are here. What is noted has been written, so that a process may be killed at any time.
#pragma once

#include "braid/result.h"
#include "registry/blob_store.h"
#include "registry/durable_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

class PartialFile {
 public:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t done = 0;  // bytes of it that are here
  };

  // Waits while another process or thread has it. Nullopt: the blob has become whole meanwhile.
  static Result<std::optional<PartialFile>> open(const BlobStore& blobs, const Digest& digest, std::uint64_t bytes,
                                                 std::uint64_t range_bytes);

  const std::vector<Range>& ranges() const { return ranges_; }
  std::uint64_t done() const;  // of all ranges

  Result<void> append(std::size_t range, std::string_view bytes);
  Result<void> note(std::size_t range);  // what has been appended to it counts for the next run, too
  void join();                           // all of it is one range, of which nothing is here, and nothing will be noted

  // Checks the digest of all of it and makes it the blob. Wrong bytes are removed: kBadFile.
  Result<void> publish(const BlobStore& blobs, const Digest& digest);

 private:
  PartialFile(OpenFile file, OpenFile notes) : file_(std::move(file)), notes_(std::move(notes)) {}
  Result<void> read_notes(std::uint64_t bytes, std::uint64_t range_bytes);
  void cut(std::uint64_t bytes, std::uint64_t range_bytes);

  OpenFile file_;
  OpenFile notes_;  // a line for each note: range, bytes of it
  std::uint64_t notes_end_ = 0;
  bool is_joined_ = false;
  std::vector<Range> ranges_;
};

}  // namespace braid::registry
