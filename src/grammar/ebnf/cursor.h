// A place in the text of a grammar.
#pragma once

#include "braid/result.h"
#include "grammar/code_points.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid::grammar {

inline constexpr std::size_t kMaxGroupNesting = 100;

// Keeps the first failure; after it, callers unwind.
class Cursor {
 public:
  // A comment begins with either of the two, and ends with its line.
  Cursor(std::string_view text, std::string_view comment, std::string_view other_comment)
      : text_(text), comment_(comment), other_comment_(other_comment) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void advance() { ++at_; }
  bool take(std::string_view literal);
  std::size_t position() const { return at_; }
  void go_to(std::size_t position) { at_ = position; }

  // White space, line ends and comments.
  void skip_space();
  void skip_blanks();  // within a line
  // Letters, digits, '-' and '_'; empty when there is none.
  std::string_view name();
  std::optional<std::uint32_t> number();

  // One character of the text, or what an escape (\n \r \t \xHH \uHHHH \UHHHHHHHH, or \ before a punctuation mark) stands for.
  std::uint32_t character();

  void fail(std::string_view what);
  bool failed() const { return error_.has_value(); }
  Error error() const { return invalid_argument(*error_); }

 private:
  std::uint32_t hexadecimal(int digits);

  std::string_view text_;
  std::string_view comment_;
  std::string_view other_comment_;
  std::size_t at_ = 0;
  std::optional<std::string> error_;
};

}  // namespace braid::grammar
