// Text from outside, in a log or on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

// `text` with its control characters (C0, DEL, C1) as \xNN, so that it stays in its line and steers no terminal.
inline std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // as UTF-8
    if (is_c1) byte = static_cast<unsigned char>(text[++i]);
    if (is_c1 || byte < 0x20 || byte == 0x7F) {
      out.append("\\x").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace braid
