#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utf8proc.h>
#include <vector>

namespace braid::text {
namespace {

CharClass class_of_category(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::kSpace;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return CharClass::kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return CharClass::kSymbol;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return CharClass::kMark;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return CharClass::kControl;
    default:
      return CharClass::kOther;
  }
}

CharClass look_up(char32_t code) {
  // White_Space holds these control characters besides all separators.
  if ((code >= 0x09 && code <= 0x0d) || code == 0x85) return CharClass::kSpace;
  if (code > 0x10ffff) return CharClass::kOther;
  return class_of_category(utf8proc_category(static_cast<utf8proc_int32_t>(code)));
}

constexpr std::size_t kAscii = 128;
const std::array<CharClass, kAscii> kAsciiClasses = [] {
  std::array<CharClass, kAscii> classes{};
  for (std::size_t i = 0; i < kAscii; ++i) classes[i] = look_up(static_cast<char32_t>(i));
  return classes;
}();

}  // namespace

Utf8Char decode_utf8(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < kAscii) return {lead, 1};
  utf8proc_int32_t code = -1;
  const auto size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (size <= 0) return {};
  return {static_cast<char32_t>(code), static_cast<std::uint32_t>(size)};
}

void append_utf8(std::string& out, char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
}

CharClass char_class(char32_t code) { return code < kAscii ? kAsciiClasses[code] : look_up(code); }

char32_t to_lower(char32_t code) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))); }

void append_lower(std::string& out, char32_t code) {
  append_utf8(out, to_lower(code));
  if (code == 0x130) append_utf8(out, 0x307);  // the one lower case of two characters: i with a dot above
}

bool is_nonspacing_mark(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_MN; }

bool is_decimal_digit(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ND; }

bool is_word_character(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // joiners, and letters in circles and squares
      return code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
             (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
  }
}

// 0x2b920 instead of 0x2b820 is the library's choice.
bool is_bert_ideograph(char32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) || (code >= 0x20000 && code <= 0x2a6df) ||
         (code >= 0x2a700 && code <= 0x2b73f) || (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

std::size_t end_of_leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (char_class(c.code) != CharClass::kSpace) break;
    at += c.size;
  }
  return at;
}

std::size_t begin_of_trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80U) --begin;
    if (char_class(decode_utf8(text, begin).code) != CharClass::kSpace) break;
    end = begin;
  }
  return end;
}

std::string_view first_grapheme(std::string_view text) {
  Utf8Char last = decode_utf8(text, 0);
  utf8proc_int32_t state = 0;
  std::size_t at = last.size;
  while (at < text.size()) {
    const Utf8Char next = decode_utf8(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code), static_cast<utf8proc_int32_t>(next.code), &state)) break;
    last = next;
    at += next.size;
  }
  return text.substr(0, at);
}

namespace {

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= kAscii; });
}

// Appends what `code` decomposes to; its parts are not in their order yet.
void decompose(char32_t code, bool compatible, std::vector<utf8proc_int32_t>& out) {
  constexpr std::size_t kLongest = 32;  // of a decomposition: 18 characters
  std::array<utf8proc_int32_t, kLongest> parts{};
  int boundary = 0;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(), kLongest,
                                             static_cast<utf8proc_option_t>(options), &boundary);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(kLongest)) {
    out.push_back(static_cast<utf8proc_int32_t>(code));
  } else {
    out.insert(out.end(), parts.begin(), parts.begin() + count);
  }
}

// Marks that follow each other stand in the order of their classes. utf8proc's own way is quadratic in their number.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto mark_class = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (mark_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, codes.end(), [&](utf8proc_int32_t code) { return mark_class(code) == 0; });
    std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

}  // namespace

std::string normal_form(NormalForm form, std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    decompose(c.code, form == NormalForm::kKC || form == NormalForm::kKD, codes);
    at += c.size;
  }
  order_marks(codes);
  auto count = static_cast<utf8proc_ssize_t>(codes.size());
  if (form == NormalForm::kC || form == NormalForm::kKC)
    count = utf8proc_normalize_utf32(codes.data(), count, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code == kInvalidByte) {
      append_utf8(out, 0xfffd);
    } else {
      out += text.substr(at, c.size);
    }
    at += c.size;
  }
  return out;
}

std::string without_accents(std::string_view text) {
  utf8proc_uint8_t* raw = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &raw,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> decomposed(raw, &std::free);
  std::string out;
  if (size <= 0) return out;
  const std::string_view view(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < view.size();) {
    const Utf8Char c = decode_utf8(view, at);
    if (utf8proc_category(static_cast<utf8proc_int32_t>(c.code)) != UTF8PROC_CATEGORY_MN) out += view.substr(at, c.size);
    at += c.size;
  }
  return out;
}

}  // namespace braid::text
