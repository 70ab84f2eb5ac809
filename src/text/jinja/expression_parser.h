// Expressions of the template language, by recursive descent in Jinja's order of precedence.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

#include <string_view>
#include <vector>

namespace braid::text::jinja {

inline constexpr int kMaxNesting = 100;  // of parentheses, of blocks
inline constexpr int kMaxHeight = 400;   // of a tree, which long chains of operators make high as well

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // Never null, also after a failure.
  ExpressionPtr parse_expression();
  // One expression, or a tuple without parentheses; ends before the name `end` too. Without `with_conditional` "a if b else c" belongs to
  // the statement around it and is not read.
  ExpressionPtr parse_tuple(bool with_conditional = true, std::string_view end = {});
  // "| name(...)" any number of times, upon `input`, which is null in a filter block.
  ExpressionPtr parse_filters(ExpressionPtr input);
  // The same without the first "|".
  ExpressionPtr parse_filter_chain(ExpressionPtr input);

  // Macro bodies being parsed, innermost last: naming caller, varargs or kwargs marks them.
  std::vector<MacroDefinition*>& open_macros() { return open_macros_; }

 private:
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_number();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_filter(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr node);
  ExpressionPtr parse_call(ExpressionPtr callee);
  std::vector<Argument> parse_arguments();

  ExpressionPtr make(Expression::Kind kind, int line);
  ExpressionPtr make(Expression::Kind kind, int line, ExpressionPtr first, ExpressionPtr second = nullptr);
  ExpressionPtr constant(int line, Object value);
  void adopt(Expression& parent, ExpressionPtr child);
  void raise(Expression& parent, int child_height);
  bool at_tuple_end(std::string_view end) const;
  bool enter();

  TokenStream& tokens_;
  std::vector<MacroDefinition*> open_macros_;
  int nesting_ = 0;
};

}  // namespace braid::text::jinja
