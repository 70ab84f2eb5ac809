// Any bytes as a segment of the disk cache. What is read from it is either a block whose digests are right, or nothing.
#include "store/record.h"
#include "store/scan.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace braid;

constexpr std::size_t kPayloadBytes = 96;
const std::string kIdentity = "model";
const std::string kAdapter = "tuned";
const std::string kSalt = "salt";
const std::vector<std::int32_t> kTokens{1, 2, 3, 4};
const std::vector<MediaSpan> kMedia{{1, 2, {5, 6}}, {3, 2, {7, 8}}};

// As the store does at its start, then as it reads.
void scan_and_read(std::span<const std::byte> bytes) {
  const int file = ::memfd_create("segment", MFD_CLOEXEC);
  if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  const store::Scan scan = store::scan_segment(file);
  ::close(file);
  std::uint64_t end = 0;
  for (const store::ScannedRecord& record : scan.records) {
    if (record.offset != end || record.bytes > bytes.size() - end) std::abort();
    end += record.bytes;
    const auto found = bytes.subspan(record.offset, record.bytes);
    const auto payload = store::read_record(found, record.key, {kIdentity, {{kAdapter, kSalt}, kTokens, kMedia}}, kPayloadBytes);
    if (payload && (payload->size() != kPayloadBytes || payload->data() < found.data() ||
                    payload->data() + payload->size() > found.data() + found.size()))
      std::abort();
  }
  if (end + scan.unreadable_bytes != bytes.size()) std::abort();
}

// Digests keep random bytes out, so the rest would see none: they are made right for whatever lengths and contents there are.
void read_with_right_digests(std::span<const std::byte> bytes) {
  std::vector<std::byte> record(bytes.begin(), bytes.end());
  if (record.size() < store::kHeaderBytes) return;
  constexpr std::size_t kDigestBytes = sizeof(cache::PrefixKey);
  const auto put = [&](std::size_t at, const cache::PrefixKey& digest) {
    std::ranges::copy(std::as_bytes(std::span(&digest, 1)), record.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(store::kHeaderBytes - 2 * kDigestBytes, cache::xxh3_key(std::span(record).subspan(store::kHeaderBytes)));
  put(store::kHeaderBytes - kDigestBytes, cache::xxh3_key(std::span(record).first(store::kHeaderBytes - kDigestBytes)));
  scan_and_read(record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  scan_and_read(std::as_bytes(std::span(bytes, size)));
  read_with_right_digests(std::as_bytes(std::span(bytes, size)));
  return 0;
}
