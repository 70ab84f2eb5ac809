// Tokens that are named after one byte: <0x00> … <0xFF>.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace braid::text {

inline std::optional<char> named_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace braid::text
