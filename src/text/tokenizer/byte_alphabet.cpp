#include "text/tokenizer/byte_alphabet.h"

#include "text/tokenizer/unicode.h"

#include <array>
#include <cstdint>

namespace braid::text {
namespace {

// Printable Latin-1 characters stand for themselves; the other 68 bytes take U+0100 and on, in order.
constexpr bool stands_for_itself(unsigned byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }

constexpr char32_t kCodes = 0x100 + 68;

struct Alphabet {
  std::array<char32_t, 256> code_of_byte{};
  std::array<std::int16_t, kCodes> byte_of_code{};  // -1: none

  constexpr Alphabet() {
    for (auto& byte : byte_of_code) byte = -1;
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t code = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      code_of_byte[byte] = code;
      byte_of_code[code] = static_cast<std::int16_t>(byte);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

std::string spell_byte(unsigned char byte) {
  std::string out;
  append_utf8(out, kAlphabet.code_of_byte[byte]);
  return out;
}

std::optional<std::string> spelt_bytes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code >= kCodes || kAlphabet.byte_of_code[c.code] < 0) return std::nullopt;
    out += static_cast<char>(kAlphabet.byte_of_code[c.code]);
    at += c.size;
  }
  return out;
}

}  // namespace braid::text
