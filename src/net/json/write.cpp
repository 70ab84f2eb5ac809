#include "net/json/write.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace braid::net::json {
namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; }

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the character that `c` begins; 0 when it begins none.
std::size_t length_by_lead(char c) {
  const auto lead = static_cast<unsigned char>(c);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

bool may_follow(char first, char c) {
  const auto lead = static_cast<unsigned char>(first);
  const auto second = static_cast<unsigned char>(c);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);  // surrogates; beyond U+10FFFF
  return is_continuation(c) && !overlong && !outside;
}

// `bytes` begins with no whole character: how long the beginning of one is that it has, or 1.
std::size_t broken_length(std::string_view bytes) {
  const std::size_t length = length_by_lead(bytes[0]);
  if (length < 3 || bytes.size() < 2 || !may_follow(bytes[0], bytes[1])) return 1;
  return length == 4 && bytes.size() > 2 && is_continuation(bytes[2]) ? 3 : 2;
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) continue;
    out.append(text, begin, i - begin);
    append_escaped(out, text[i]);
    begin = i + 1;
  }
  out.append(text, begin);
  out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t length = length_by_lead(text[0]);
  if (text.size() < length || (length > 1 && !may_follow(text[0], text[1]))) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  return length;
}

void append_lossy_string(std::string& out, std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    text += length == 0 ? std::string_view("\xEF\xBF\xBD") : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? broken_length(bytes) : length);
  }
  append_string(out, text);
}

void append_member(std::string& out, std::string_view name, std::string_view bytes) {
  out += ",\"";
  out += name;
  out += "\":";
  append_lossy_string(out, bytes);
}

void append_float(std::string& out, float value) {
  if (!std::isfinite(value)) value = value > 0 ? 9999.0F : -9999.0F;
  fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace braid::net::json
