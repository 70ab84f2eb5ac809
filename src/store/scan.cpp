#include "store/scan.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::store {

Scan scan_segment(int file) {
  Scan scan;
  struct stat status {};
  if (::fstat(file, &status) != 0) {
    scan.error = errno;
    return scan;
  }
  scan.file_bytes = static_cast<std::uint64_t>(status.st_size);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);  // a header every few hundred kilobytes: read-ahead would read everything
  std::uint64_t offset = 0;
  while (offset + kHeaderBytes <= scan.file_bytes) {
    std::array<std::byte, kHeaderBytes> bytes;
    const ssize_t got = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) scan.error = errno;
    if (got != static_cast<ssize_t>(bytes.size())) break;
    const std::optional<RecordHeader> header = parse_header(bytes);
    if (!header || header->record_bytes() > scan.file_bytes - offset) break;
    scan.records.push_back({header->key, offset, header->record_bytes(), header->written_at});
    offset += header->record_bytes();
  }
  scan.unreadable_bytes = scan.file_bytes - offset;
  ::posix_fadvise(file, 0, 0, POSIX_FADV_NORMAL);
  return scan;
}

}  // namespace braid::store
