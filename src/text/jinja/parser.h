// Statements of the template language.
#pragma once

#include "text/jinja/expression_parser.h"

#include <initializer_list>
#include <string_view>

namespace braid::text::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Block> run();

 private:
  // Statements up to a tag whose name is in `ends`; its name is taken, the rest of the tag is left. At the top level
  // `ends` is empty and the template's end is the end.
  Block parse_block(std::initializer_list<std::string_view> ends, std::string_view opener = {}, int opened = 0);
  // parse_block for a statement with one end, whose tag is read to its close.
  Block parse_body(std::string_view end, std::string_view opener, int opened);

  std::unique_ptr<Statement> parse_statement();
  std::unique_ptr<Statement> parse_print();
  std::unique_ptr<Statement> parse_if(int line);
  std::unique_ptr<Statement> parse_for(int line);
  std::unique_ptr<Statement> parse_set(int line);
  std::unique_ptr<Statement> parse_with(int line);
  std::unique_ptr<Statement> parse_macro(int line);
  std::unique_ptr<Statement> parse_call_block(int line);
  std::unique_ptr<Statement> parse_filter_block(int line);
  std::unique_ptr<Statement> parse_jump(int line, Statement::Kind kind, std::string_view name);
  void parse_parameters(MacroDefinition& macro);
  Target parse_target(bool allows_attribute);
  Target parse_single_target(bool allows_attribute);
  void close_block() { tokens_.expect(Token::Kind::kCloseBlock, "%}"); }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  int loops_ = 0;  // open in the innermost macro
};

}  // namespace braid::text::jinja
