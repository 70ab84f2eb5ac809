#include "files/gguf_cursor.h"

#include <bit>
#include <fmt/format.h>
#include <iterator>

namespace braid::files {

static_assert(std::endian::native == std::endian::little, "GGUF values are copied as they lie in the file");

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 64;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

void GgufCursor::fail(std::uint64_t offset, std::string_view found, std::string_view expected, ErrorCode code) {
  if (error_) return;
  error_ = Error{code, fmt::format("{}: at offset {}: found {}, expected {}", name_, offset, found, expected), {}};
}

bool GgufCursor::claim(std::uint64_t size, std::string_view what) {
  if (failed()) return false;
  if (size > remaining()) {
    fail(offset_, fmt::format("the end of the file after {} bytes", remaining()),
         fmt::format("{} ({} bytes); the download is probably incomplete", what, size));
    return false;
  }
  offset_ += size;
  return true;
}

std::string GgufCursor::read_string(std::string_view what, std::uint64_t max_bytes) {
  const std::uint64_t start = offset_;
  const auto size = read<std::uint64_t>(what);
  if (size > max_bytes) fail(start, fmt::format("a length of {} bytes for {}", size, what), fmt::format("at most {}", max_bytes));
  if (!claim(size, what)) return {};
  return {reinterpret_cast<const char*>(bytes_.data()) + offset_ - size, static_cast<std::size_t>(size)};
}

std::uint64_t GgufCursor::read_count(std::string_view what, std::uint64_t min_bytes) {
  const std::uint64_t start = offset_;
  const auto count = read<std::uint64_t>(what);
  if (failed()) return 0;
  if (count > remaining() / min_bytes) {
    fail(start, fmt::format("{} = {}", what, count),
         fmt::format("at most {}, which is what the remaining {} bytes can hold", remaining() / min_bytes, remaining()));
    return 0;
  }
  return count;
}

}  // namespace braid::files
