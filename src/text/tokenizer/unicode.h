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

// Appends the lower case, which is one character but for U+0130.
void append_lower(std::string& out, char32_t code);
bool is_nonspacing_mark(char32_t code);
bool is_decimal_digit(char32_t code);
// What \w takes for part of a word (Unicode Technical Standard 18).
bool is_word_character(char32_t code);
// The blocks that the tokenizers library calls Chinese for BERT.
bool is_bert_ideograph(char32_t code);

// Where white space at the start ends, and where that at the end begins.
std::size_t end_of_leading_space(std::string_view text);
std::size_t begin_of_trailing_space(std::string_view text);

// The first extended grapheme cluster of valid UTF-8 that is not empty.
std::string_view first_grapheme(std::string_view text);

// Unicode's normal forms (Unicode Standard Annex 15) of valid UTF-8.
enum class NormalForm { kC, kD, kKC, kKD };
std::string normal_form(NormalForm form, std::string_view text);

// `text` with U+FFFD for each byte that is no part of valid UTF-8.
std::string valid_utf8(std::string_view text);

// Canonical decomposition (NFD) of valid UTF-8 without its nonspacing marks. Invalid text gives nothing.
std::string without_accents(std::string_view text);

}  // namespace braid::text
