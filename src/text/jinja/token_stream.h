// The tokens of a template as the parsers read them. The first failure is kept and moves to the end, so that every
// loop of a parser comes to rest.
#pragma once

#include "text/jinja/lexer.h"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return current().line; }
  bool at_end() const { return current().kind == Token::Kind::kEnd; }

  bool is(Token::Kind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const { return is(Token::Kind::kOperator) && current().text == text; }
  bool is_name(std::string_view text) const { return is(Token::Kind::kName) && current().text == text; }

  Token take() {
    Token token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_operator(std::string_view text) { return is_operator(text) && skip(); }
  bool skip_name(std::string_view text) { return is_name(text) && skip(); }
  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) fail_expecting(fmt::format("'{}'", text));
  }
  void expect(Token::Kind kind, std::string_view what) {
    if (!is(kind) || !skip()) fail_expecting(what);
  }
  std::string expect_name() {
    if (is(Token::Kind::kName)) return take().text;
    fail_expecting("a name");
    return {};
  }

  void fail(int line, std::string_view what) {
    if (!error_) error_ = template_error(line, what);
    at_ = tokens_.size() - 1;
  }
  void fail_expecting(std::string_view what) {
    fail(line(), at_end() ? fmt::format("expected {}, but the template ends", what)
                          : fmt::format("expected {}, found '{}'", what, current().text.substr(0, 40)));
  }
  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool skip() {
    take();
    return true;
  }
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace braid::text::jinja
