// A read-only run of bytes with a name: a mapped file, or the model linked into the binary.
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace braid::files {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  virtual const std::string& name() const = 0;
  // Tells the system that [offset, offset + size) will not be read again (after repacking). A hint.
  virtual void drop_pages(std::size_t offset, std::size_t size) const = 0;
};

// Maps a regular file read-only.
Result<std::shared_ptr<const ByteSource>> map_file(const std::string& path);

// A regular file as a whole, so that who writes to it meanwhile changes nothing; at most kMostCopyBytes. kIo.
inline constexpr std::uint64_t kMostCopyBytes = std::uint64_t{16} << 30U;
Result<std::shared_ptr<const ByteSource>> copy_file(const std::string& path);

// Read-only bytes of the binary itself, such as the embedded model: what is dropped can be read again from its file.
std::shared_ptr<const ByteSource> linked_bytes(std::span<const std::byte> bytes, std::string name);

// Bytes that were computed.
std::shared_ptr<const ByteSource> owned_bytes(std::vector<std::byte> bytes, std::string name);

}  // namespace braid::files
