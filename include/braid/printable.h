// Text from outside, in a log or on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

// `text` with its control characters (C0, DEL, C1) but those `kept` as \xNN, so that it stays in its line and steers no terminal. A C1 that
// is a byte of its own, which an eight-bit terminal obeys, counts as well; other bytes that are not UTF-8 stay as they are.
inline std::string printable(std::string_view text, std::string_view kept = {}) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  int due = 0;  // bytes that the character of the last ones still has
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // as UTF-8
    const bool continues = due > 0 && byte >= 0x80 && byte < 0xC0;
    due = continues ? due - 1 : is_c1 || byte < 0xC2 || byte > 0xF4 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    if (is_c1) byte = static_cast<unsigned char>(text[++i]);
    const bool is_kept = kept.find(text[i]) != std::string_view::npos;
    if (is_c1 || (byte < 0x20 && !is_kept) || byte == 0x7F || (!continues && byte >= 0x80 && byte < 0xA0)) {
      out.append("\\x").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace braid
