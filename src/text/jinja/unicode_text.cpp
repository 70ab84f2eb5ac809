#include "text/jinja/unicode_text.h"

#include <iterator>
#include <utf8proc.h>

namespace braid::text::jinja {
namespace {

constexpr std::int32_t kReplacement = 0xFFFD;

template <class Belongs>
std::string_view strip_if(std::string_view text, Side side, Belongs belongs) {
  std::size_t begin = 0;
  if (side != Side::kRight) {
    for (std::size_t next = 0; next < text.size(); begin = next)
      if (!belongs(next_code_point(text, next))) break;
  }
  std::size_t end = text.size();
  while (side != Side::kLeft && end > begin) {
    std::size_t start = end - 1;
    while (start > begin && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    std::size_t next = start;
    const std::int32_t code_point = next_code_point(text.substr(0, end), next);
    if (next != end) start = end - 1;  // a stray continuation byte
    if (!belongs(next == end ? code_point : kReplacement)) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

template <class Map>
std::string map_code_points(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_code_point(out, map(next_code_point(text, at)));
  return out;
}

utf8proc_category_t category(std::int32_t code_point) { return utf8proc_category(code_point); }

}  // namespace

std::int32_t next_code_point(std::string_view text, std::size_t& offset) {
  const auto first = static_cast<unsigned char>(text[offset]);
  if (first < 0x80) {
    ++offset;
    return first;
  }
  utf8proc_int32_t code_point = 0;
  const auto left = static_cast<utf8proc_ssize_t>(text.size() - offset);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + offset);
  const auto length = utf8proc_iterate(bytes, left, &code_point);
  offset += length > 0 ? static_cast<std::size_t>(length) : 1;
  return length > 0 ? code_point : kReplacement;
}

void append_code_point(std::string& out, std::int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(utf8proc_codepoint_valid(code_point) ? code_point : kReplacement, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

std::size_t offset_of_code_point(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  while (index > 0 && at < text.size()) {
    next_code_point(text, at);
    --index;
  }
  return at;
}

bool is_space(std::int32_t code_point) {
  if (code_point < 0x80) return (code_point >= 0x09 && code_point <= 0x0D) || (code_point >= 0x1C && code_point <= 0x20);
  if (code_point == 0x85) return true;
  const auto kind = category(code_point);
  return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool is_printable(std::int32_t code_point) {
  if (code_point == ' ') return true;
  switch (category(code_point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_upper(std::int32_t code_point) { return category(code_point) == UTF8PROC_CATEGORY_LU; }
bool is_lower(std::int32_t code_point) { return category(code_point) == UTF8PROC_CATEGORY_LL; }
bool is_digit(std::int32_t code_point) { return category(code_point) == UTF8PROC_CATEGORY_ND; }

bool is_letter(std::int32_t code_point) {
  const auto kind = category(code_point);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

std::string_view strip(std::string_view text, Side side) { return strip_if(text, side, is_space); }

std::string_view strip(std::string_view text, Side side, std::string_view characters) {
  return strip_if(text, side, [characters](std::int32_t code_point) {
    for (std::size_t at = 0; at < characters.size();)
      if (next_code_point(characters, at) == code_point) return true;
    return false;
  });
}

std::string to_upper(std::string_view text) {
  constexpr std::int32_t kSharpS = 0xDF;  // the one common letter whose capital is two
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t code_point = next_code_point(text, at);
    if (code_point == kSharpS) {
      out += "SS";
    } else {
      append_code_point(out, utf8proc_toupper(code_point));
    }
  }
  return out;
}

std::string to_lower(std::string_view text) { return map_code_points(text, utf8proc_tolower); }

std::string casefold(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t code_point = next_code_point(text, at);
    utf8proc_int32_t folded[4];  // three at most
    int unused = 0;
    const auto count = utf8proc_decompose_char(code_point, folded, std::size(folded), UTF8PROC_CASEFOLD, &unused);
    for (utf8proc_ssize_t i = 0; i < count; ++i) append_code_point(out, folded[i]);
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::int32_t code_point = next_code_point(text, at);
    const auto character = text.substr(begin, at - begin);
    if (is_upper(code_point)) {
      out += to_lower(character);
    } else {
      out += is_lower(code_point) ? to_upper(character) : character;
    }
  }
  return out;
}

std::string capitalize(std::string_view text) {
  bool first = true;
  return map_code_points(text, [&](std::int32_t code_point) {
    const auto mapped = first ? utf8proc_totitle(code_point) : utf8proc_tolower(code_point);
    first = false;
    return mapped;
  });
}

std::string title(std::string_view text) {
  bool in_word = false;
  return map_code_points(text, [&](std::int32_t code_point) {
    const auto mapped = in_word ? utf8proc_tolower(code_point) : utf8proc_totitle(code_point);
    in_word = is_letter(code_point);
    return mapped;
  });
}

}  // namespace braid::text::jinja
