#include "grammar/ebnf/cursor.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::grammar {
namespace {

constexpr std::uint32_t kMostCount = 1'000'000;

bool is_name_byte(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

}  // namespace

bool Cursor::take(std::string_view literal) {
  if (text_.substr(std::min(at_, text_.size()), literal.size()) != literal) return false;
  at_ += literal.size();
  return true;
}

void Cursor::skip_space() {
  while (!at_end()) {
    if (const char c = peek(); c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (text_.substr(at_, comment_.size()) == comment_ || text_.substr(at_, other_comment_.size()) == other_comment_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

void Cursor::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

std::string_view Cursor::name() {
  const std::size_t begin = at_;
  while (is_name_byte(peek()) && !(peek() == '-' && peek(1) == '>')) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::optional<std::uint32_t> Cursor::number() {
  const std::size_t begin = at_;
  std::uint32_t value = 0;
  for (; peek() >= '0' && peek() <= '9'; ++at_) value = std::min(kMostCount, value * 10 + static_cast<std::uint32_t>(peek() - '0'));
  if (at_ == begin) return std::nullopt;
  return value;
}

std::uint32_t Cursor::hexadecimal(int digits) {
  std::uint32_t value = 0;
  for (int i = 0; i < digits; ++i, ++at_) {
    const auto digit = hex_digit(peek());
    if (!digit) {
      fail("an escape lacks hexadecimal digits");
      return 0;
    }
    value = value * 16 + *digit;
  }
  if (CodePointSet({{value, value}}).empty()) fail("an escape names no character");
  return value;
}

std::uint32_t Cursor::character() {
  std::uint32_t point = 0;
  if (at_end()) {
    fail("the text ends in the middle");
  } else if (!take("\\")) {
    if (!next_code_point(text_, at_, point)) fail("the text is not UTF-8");
  } else if (take("n")) {
    point = '\n';
  } else if (take("r")) {
    point = '\r';
  } else if (take("t")) {
    point = '\t';
  } else if (take("f")) {
    point = '\f';
  } else if (take("x")) {
    point = hexadecimal(2);
  } else if (take("u")) {
    point = hexadecimal(4);
  } else if (take("U")) {
    point = hexadecimal(8);
  } else if (is_name_byte(peek()) && peek() != '-') {
    fail("an unknown escape");
  } else if (at_end() || !next_code_point(text_, at_, point)) {
    fail("the text ends in the middle");
  }
  return point;
}

void Cursor::fail(std::string_view what) {
  if (error_) return;
  const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
  error_ = fmt::format("line {}: {}", 1 + std::count(before.begin(), before.end(), '\n'), what);
}

}  // namespace braid::grammar
