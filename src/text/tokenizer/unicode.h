// UTF-8 and the Unicode classes that tokenizers split by. Classes come from utf8proc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::text {

enum class CharClass : std::uint8_t { kLetter, kNumber, kSpace, kPunctuation, kSymbol, kMark, kControl, kOther };

// What stands for a byte that is no part of valid UTF-8; its class is kOther.
inline constexpr char32_t kInvalidByte = 0xffffffff;

struct Utf8Char {
  char32_t code = kInvalidByte;
  std::uint32_t size = 1;  // in bytes
};

// The character at `at`, which must be within the text.
Utf8Char decode_utf8(std::string_view text, std::size_t at);
void append_utf8(std::string& out, char32_t code);

CharClass char_class(char32_t code);
char32_t to_lower(char32_t code);

// Canonical decomposition (NFD) of valid UTF-8 without its nonspacing marks. Invalid text gives nothing.
std::string without_accents(std::string_view text);

}  // namespace braid::text
