// Reads little-endian values from a file's bytes, never past the end. The first failure sticks; later reads give zeros.
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid::files {

// `text` for use within a message: printable, quoted and cut.
std::string in_quotes(std::string_view text);

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t remaining() const { return bytes_.size() - offset_; }
  bool failed() const { return error_.has_value(); }
  // Only after failed().
  Error take_error() { return std::move(*error_); }

  // `what` names the value in a message.
  template <class T>
  T read(std::string_view what) {
    T value{};
    if (!claim(sizeof(T), what)) return value;
    std::memcpy(&value, bytes_.data() + offset_ - sizeof(T), sizeof(T));
    return value;
  }

  std::string read_string(std::string_view what, std::uint64_t max_bytes);

  // A count of things that take at least `min_bytes` each in what follows.
  std::uint64_t read_count(std::string_view what, std::uint64_t min_bytes);

  // Records "NAME: at offset O: found F, expected E".
  void fail(std::uint64_t offset, std::string_view found, std::string_view expected, ErrorCode code = ErrorCode::kBadFile);

 private:
  bool claim(std::uint64_t size, std::string_view what);

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::uint64_t offset_ = 0;
  std::optional<Error> error_;
};

}  // namespace braid::files
