#include "text/tokenizer/unicode.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <utf8proc.h>

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
