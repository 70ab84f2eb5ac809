#include "text/go_template/lexer.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

namespace braid::text::go {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6U);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12U);
    } else {
      put(0xF0 | code >> 18U);
      put(0x80 | (code >> 12U & 0x3FU));
    }
    put(0x80 | (code >> 6U & 0x3FU));
  }
  put(0x80 | (code & 0x3FU));
}

class Splitter {
 public:
  explicit Splitter(std::string_view source) : source_(source) {}

  Result<std::vector<Word>> run() {
    while (at_ < source_.size()) {
      const std::size_t open = std::min(source_.find("{{", at_), source_.size());
      add_text(source_.substr(at_, open - at_));
      if (open == source_.size()) break;
      at_ = open + 2;
      if (const Result<void> read = read_action(); !read) return read.error();
    }
    return std::move(words_);
  }

 private:
  bool begins(std::string_view what) const { return source_.substr(at_).starts_with(what); }
  bool is_blank(std::size_t at) const { return at < source_.size() && kBlank.find(source_[at]) != std::string_view::npos; }
  void skip(std::size_t count) {
    line_ += static_cast<int>(std::ranges::count(source_.substr(at_, count), '\n'));
    at_ += count;
  }
  Error fault(const std::string& what) const { return invalid_argument(fmt::format("the template, line {}: {}", line_, what), "template"); }
  void add(Word::Kind kind, std::string text) { words_.push_back({kind, std::move(text), line_, is_joined_}); }

  // Behind "-}}" without the white space that it begins with.
  void add_text(std::string_view text) {
    const int line = line_;
    line_ += static_cast<int>(std::ranges::count(text, '\n'));
    if (std::exchange(trims_next_, false)) text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    if (!text.empty()) words_.push_back({Word::Kind::kText, std::string(text), line, false});
  }

  void trim_last_text() {
    if (words_.empty() || words_.back().kind != Word::Kind::kText) return;
    std::string& text = words_.back().text;
    text.resize(text.find_last_not_of(kBlank) + 1);
    if (text.empty()) words_.pop_back();
  }

  // From behind its braces to behind those at its end.
  Result<void> read_action() {
    if (begins("-") && is_blank(at_ + 1)) {
      trim_last_text();
      skip(1);
    }
    const std::size_t first = words_.size();
    add(Word::Kind::kBegin, "");
    for (is_joined_ = false;; is_joined_ = true) {
      while (is_blank(at_)) {
        is_joined_ = false;
        if (source_.substr(at_ + 1).starts_with("-}}")) {
          trims_next_ = true;
          skip(2);
          break;
        }
        skip(1);
      }
      if (begins("}}")) {
        skip(2);
        if (words_.size() == first + 1) {  // a comment, or nothing
          words_.pop_back();
        } else {
          add(Word::Kind::kEnd, "");
        }
        return {};
      }
      if (at_ >= source_.size()) return fault("an action has no end");
      if (const Result<void> read = read_word(); !read) return read;
    }
  }

  Result<void> read_word() {
    const char c = source_[at_];
    if (begins("/*")) {
      const std::size_t end = source_.find("*/", at_);
      if (end == std::string_view::npos) return fault("a comment has no end");
      skip(end + 2 - at_);
      return {};
    }
    if (c == '"' || c == '\'') return read_string();
    if (c == '`') {
      const std::size_t end = source_.find('`', at_ + 1);
      if (end == std::string_view::npos) return fault("a string has no end");
      add(Word::Kind::kString, std::string(source_.substr(at_ + 1, end - at_ - 1)));
      skip(end + 1 - at_);
      return {};
    }
    if (begins(":=")) return add(Word::Kind::kSign, ":="), skip(2), Result<void>();
    if (std::string_view("()|,=").find(c) != std::string_view::npos)
      return add(Word::Kind::kSign, std::string(1, c)), skip(1), Result<void>();
    const bool is_negative = (c == '-' || c == '+') && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]);
    if (is_digit(c) || is_negative) {
      const std::size_t begin = at_++;
      while (at_ < source_.size() && (is_digit(source_[at_]) || source_[at_] == '.')) ++at_;
      add(Word::Kind::kNumber, std::string(source_.substr(begin, at_ - begin)));
      return {};
    }
    if (c != '.' && c != '$' && !is_letter(c)) return fault(fmt::format("unexpected '{}'", c));
    const std::size_t begin = c == '.' ? at_ + 1 : at_;
    std::size_t end = is_letter(c) ? at_ : at_ + 1;
    while (end < source_.size() && (is_letter(source_[end]) || is_digit(source_[end]))) ++end;
    add(c == '.'   ? Word::Kind::kField
        : c == '$' ? Word::Kind::kVariable
                   : Word::Kind::kName,
        std::string(source_.substr(begin, end - begin)));
    at_ = end;
    return {};
  }

  // In double quotes, or one character in single ones, which is its number in Go and a text here.
  Result<void> read_string() {
    const char quote = source_[at_];
    std::string text;
    std::size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote && source_[at] != '\n'; ++at) {
      if (source_[at] != '\\') {
        text += source_[at];
        continue;
      }
      if (++at == source_.size()) break;
      constexpr std::string_view kShort = "abfnrtv\\\"'";
      constexpr std::string_view kMeant = "\a\b\f\n\r\t\v\\\"'";
      if (const std::size_t found = kShort.find(source_[at]); found != std::string_view::npos) {
        text += kMeant[found];
        continue;
      }
      const std::size_t digits = source_[at] == 'x' ? 2 : source_[at] == 'u' ? 4 : source_[at] == 'U' ? 8 : 0;
      const std::string_view hexadecimal = source_.substr(at + 1, digits);
      if (digits == 0 || hexadecimal.size() < digits || hexadecimal.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
        return fault(fmt::format("unknown escape '\\{}'", source_[at]));
      const auto code = static_cast<std::uint32_t>(std::stoul(std::string(hexadecimal), nullptr, 16));
      if (code > 0x10FFFF) return fault("an escape beyond Unicode");
      if (digits == 2) {
        text += static_cast<char>(code);
      } else {
        append_utf8(code, text);
      }
      at += digits;
    }
    if (at >= source_.size() || source_[at] != quote) return fault("a string has no end");
    add(Word::Kind::kString, std::move(text));
    skip(at + 1 - at_);
    return {};
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool trims_next_ = false;
  bool is_joined_ = false;
  std::vector<Word> words_;
};

}  // namespace

Result<std::vector<Word>> split(std::string_view source) { return Splitter(source).run(); }

}  // namespace braid::text::go
