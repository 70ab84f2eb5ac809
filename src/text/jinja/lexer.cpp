#include "text/jinja/lexer.h"

#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::text::jinja {
namespace {

using TokenKind = Token::Kind;

// Line ends become \n and one of them at the very end goes, as Jinja does.
std::string normalise_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit_byte(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(normalise_lines(source)), source_(owned_) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size() && error_.empty()) lex_text();
    if (!error_.empty()) return template_error(line_, error_);
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  void fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }
  bool starts(std::string_view what) const { return source_.substr(at_).substr(0, what.size()) == what; }
  void advance(std::size_t count) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_), source_.begin() + static_cast<std::ptrdiff_t>(at_ + count), '\n'));
    at_ += count;
    if (count > 0) at_line_start_ = source_[at_ - 1] == '\n';
  }
  void skip_spaces() {
    while (at_ < source_.size()) {
      std::size_t next = at_;
      if (!is_space(next_code_point(source_, next))) return;
      advance(next - at_);
    }
  }

  // The text before a tag that starts with `sign` behind its two characters.
  std::string_view trim_before_tag(std::string_view text, char sign, bool is_print) const {
    if (sign == '-') return strip(text, Side::kRight);
    if (sign == '+' || is_print) return text;
    const std::size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !at_line_start_) return text;
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    return strip(text.substr(begin), Side::kBoth).empty() ? text.substr(0, begin) : text;
  }

  // Emits source [at_, end) as text, cut as the tag at `end` asks.
  void emit_text(std::size_t end, char sign, bool is_print) {
    const auto text = trim_before_tag(source_.substr(at_, end - at_), sign, is_print);
    if (!text.empty()) push(TokenKind::kText, std::string(text));
    advance(end - at_);
  }

  std::size_t find_tag() const {
    for (std::size_t at = source_.find('{', at_); at != std::string_view::npos; at = source_.find('{', at + 1)) {
      if (at + 1 >= source_.size()) break;
      const char next = source_[at + 1];
      if (next == '%' || next == '{' || next == '#') return at;
    }
    return std::string_view::npos;
  }

  char sign_at(std::size_t offset) const {
    if (offset >= source_.size()) return 0;
    return source_[offset] == '-' || source_[offset] == '+' ? source_[offset] : '\0';
  }

  void lex_text() {
    const std::size_t tag = find_tag();
    if (tag == std::string_view::npos) {
      push(TokenKind::kText, std::string(source_.substr(at_)));
      advance(source_.size() - at_);
      return;
    }
    const char type = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    emit_text(tag, sign, type == '{');
    const std::size_t open = sign == 0 ? 2 : 3;
    if (type == '#') return lex_comment(open);
    if (type == '%' && lex_raw(open)) return;
    push(type == '{' ? TokenKind::kOpenPrint : TokenKind::kOpenBlock, type == '{' ? "{{" : "{%");
    advance(open);
    lex_tag(type == '{');
  }

  // Moves behind the end of a tag that starts at at_: "-%}" eats the white space that follows, "%}" one line end.
  // False when no end stands here.
  bool close(std::string_view end, bool trims_line) {
    const char sign = sign_at(at_);
    const std::size_t skip = sign == 0 ? 0 : 1;
    if (sign == '+' && !trims_line) return false;
    if (source_.substr(std::min(at_ + skip, source_.size())).substr(0, end.size()) != end) return false;
    advance(skip + end.size());
    if (sign == '-') {
      skip_spaces();
    } else if (sign == 0 && trims_line && starts("\n")) {
      advance(1);
    }
    return true;
  }

  void lex_comment(std::size_t open) {
    const int opened = line_;
    std::size_t end = source_.find("#}", at_ + open);
    if (end == std::string_view::npos) {
      line_ = opened;
      return fail("a comment is not closed by #}");
    }
    if (end > at_ + open && sign_at(end - 1) != 0) --end;
    advance(end - at_);
    close("#}", true);
  }

  // The word of a block tag that starts at `offset` behind its sign, or "" when it is not `word` alone.
  std::size_t match_word(std::size_t offset, std::string_view word) const {
    while (offset < source_.size()) {
      std::size_t next = offset;
      if (!is_space(next_code_point(source_, next))) break;
      offset = next;
    }
    if (source_.substr(offset, word.size()) != word) return std::string_view::npos;
    offset += word.size();
    while (offset < source_.size()) {
      std::size_t next = offset;
      if (!is_space(next_code_point(source_, next))) break;
      offset = next;
    }
    const std::size_t tail = sign_at(offset) == 0 ? offset : offset + 1;
    return source_.substr(std::min(tail, source_.size()), 2) == "%}" ? offset : std::string_view::npos;
  }

  bool lex_raw(std::size_t open) {
    const std::size_t end_of_open = match_word(at_ + open, "raw");
    if (end_of_open == std::string_view::npos || sign_at(end_of_open) == '+') return false;
    advance(end_of_open - at_);
    const bool strips = sign_at(at_) == '-';
    advance(strips ? 3 : 2);
    if (strips) skip_spaces();
    for (std::size_t tag = source_.find("{%", at_); tag != std::string_view::npos; tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      const std::size_t end = match_word(tag + (sign == 0 ? 2 : 3), "endraw");
      if (end == std::string_view::npos) continue;
      emit_text(tag, sign, false);
      advance(end - at_);
      close("%}", true);
      return true;
    }
    fail("{% raw %} is not closed by {% endraw %}");
    return true;
  }

  void lex_tag(bool is_print) {
    std::string brackets;  // closing ones still to come: "}}" inside a dict is no end of the tag
    const int opened = line_;
    while (error_.empty()) {
      skip_spaces();
      if (at_ >= source_.size()) {
        line_ = opened;
        return fail(is_print ? "{{ is not closed by }}" : "{% is not closed by %}");
      }
      if (brackets.empty()) {
        const int line = line_;
        if (close(is_print ? "}}" : "%}", !is_print)) {
          tokens_.push_back({is_print ? TokenKind::kClosePrint : TokenKind::kCloseBlock, line, is_print ? "}}" : "%}"});
          return;
        }
      }
      lex_token(brackets);
    }
  }

  void lex_token(std::string& brackets) {
    const char c = source_[at_];
    if (is_digit_byte(c)) return lex_number();
    if (is_name_byte(c)) {
      std::size_t end = at_;
      while (end < source_.size() && is_name_byte(source_[end])) ++end;
      push(TokenKind::kName, std::string(source_.substr(at_, end - at_)));
      return advance(end - at_);
    }
    if (c == '\'' || c == '"') return lex_string(c);
    lex_operator(brackets);
  }

  std::size_t skip_digits(std::size_t at) const {
    while (at < source_.size() &&
           (is_digit_byte(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && is_digit_byte(source_[at + 1]))))
      ++at;
    return at;
  }

  void lex_number() {
    std::size_t end = skip_digits(at_);
    bool is_float = false;
    const auto digit_at = [&](std::size_t at) { return at < source_.size() && is_digit_byte(source_[at]); };
    if (end + 1 < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      is_float = true;
      end = skip_digits(end + 1);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const std::size_t sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-') ? 1 : 0;
      if (digit_at(end + 1 + sign)) {
        is_float = true;
        end = skip_digits(end + 1 + sign);
      }
    }
    std::string text(source_.substr(at_, end - at_));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    push(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    advance(end - at_);
  }

  void lex_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return fail("a string is not closed");
    std::string value;
    unescape(source_.substr(at_ + 1, end - at_ - 1), value);
    push(TokenKind::kString, std::move(value));
    advance(end + 1 - at_);
  }

  // Python's escapes; an unknown one stays as it is written.
  void unescape(std::string_view text, std::string& out) {
    static constexpr std::string_view kPlain = "\\'\"abfnrtv";
    static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out.push_back(text[i]);
        continue;
      }
      const char c = text[++i];
      if (const auto plain = kPlain.find(c); plain != std::string_view::npos) {
        out.push_back(kMeaning[plain]);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        i += unescape_number(text.substr(i + 1), c == 'x' ? 2 : (c == 'u' ? 4 : 8), 16, out);
      } else if (c >= '0' && c <= '7') {
        std::size_t digits = 1;
        while (digits < 3 && i + digits < text.size() && text[i + digits] >= '0' && text[i + digits] <= '7') ++digits;
        i += unescape_number(text.substr(i), digits, 8, out) - 1;
      } else if (c != '\n') {
        out.push_back('\\');
        out.push_back(c);
      }
    }
  }

  std::size_t unescape_number(std::string_view text, std::size_t digits, int base, std::string& out) {
    std::int64_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = i < text.size() ? text[i] : '\0';
      const int lower = c | 0x20;
      const int digit = is_digit_byte(c) ? c - '0' : (lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16);
      if (digit >= base) {
        fail("a string has a truncated escape");
        return 1;
      }
      value = value * base + digit;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) fail("a string escapes what is no character");
    append_code_point(out, static_cast<std::int32_t>(std::min<std::int64_t>(value, 0x10FFFF)));
    return digits;
  }

  void lex_operator(std::string& brackets) {
    static constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                                    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const auto candidate : kOperators) {
      if (!starts(candidate)) continue;
      const char c = candidate[0];
      if (c == '(' || c == '[' || c == '{') brackets.push_back(c == '(' ? ')' : static_cast<char>(c + 2));
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty() || brackets.back() != c) return fail(fmt::format("unexpected '{}'", c));
        brackets.pop_back();
      }
      push(TokenKind::kOperator, std::string(candidate));
      return advance(candidate.size());
    }
    std::size_t end = at_;
    next_code_point(source_, end);
    fail(fmt::format("unexpected character '{}'", source_.substr(at_, end - at_)));
  }

  std::string owned_;
  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
  std::string error_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

Error template_error(int line, std::string_view what) {
  return invalid_argument(fmt::format("line {} of the chat template: {}", line, what));
}

}  // namespace braid::text::jinja
