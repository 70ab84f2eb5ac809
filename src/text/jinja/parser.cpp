#include "text/jinja/parser.h"

#include <algorithm>

namespace braid::text::jinja {
namespace {

using StatementKind = Statement::Kind;
using TokenKind = Token::Kind;

std::unique_ptr<Statement> make(StatementKind kind, int line) {
  auto node = std::make_unique<Statement>();
  node->kind = kind;
  node->line = line;
  return node;
}

}  // namespace

Result<Block> Parser::run() {
  auto body = parse_block({});
  if (tokens_.error()) return *tokens_.error();
  return body;
}

Block Parser::parse_block(std::initializer_list<std::string_view> ends, std::string_view opener, int opened) {
  Block body;
  if (nesting_ == kMaxNesting) {
    tokens_.fail(tokens_.line(), "blocks nest too deeply");
    return body;
  }
  ++nesting_;
  while (!tokens_.at_end()) {
    if (tokens_.is(TokenKind::kText)) {
      auto node = make(StatementKind::kText, tokens_.line());
      node->text = tokens_.take().text;
      body.push_back(std::move(node));
    } else if (tokens_.is(TokenKind::kOpenPrint)) {
      body.push_back(parse_print());
    } else {
      tokens_.expect(TokenKind::kOpenBlock, "{%");
      const auto is_end = [&](std::string_view name) { return tokens_.is_name(name); };
      if (std::any_of(ends.begin(), ends.end(), is_end)) {
        --nesting_;
        return body;
      }
      if (auto statement = parse_statement()) body.push_back(std::move(statement));
    }
  }
  --nesting_;
  if (ends.size() > 0) tokens_.fail(opened, fmt::format("{{% {} %}} is not closed by {{% {} %}}", opener, *(ends.end() - 1)));
  return body;
}

Block Parser::parse_body(std::string_view end, std::string_view opener, int opened) {
  close_block();
  auto body = parse_block({end}, opener, opened);
  tokens_.skip_name(end);
  return body;
}

std::unique_ptr<Statement> Parser::parse_print() {
  auto node = make(StatementKind::kPrint, tokens_.take().line);
  node->expression = expressions_.parse_tuple();
  tokens_.expect(TokenKind::kClosePrint, "}}");
  return node;
}

std::unique_ptr<Statement> Parser::parse_statement() {
  const int line = tokens_.line();
  const std::string name = tokens_.expect_name();
  std::unique_ptr<Statement> node;
  if (name == "if") {
    node = parse_if(line);
  } else if (name == "for") {
    node = parse_for(line);
  } else if (name == "set") {
    node = parse_set(line);
  } else if (name == "macro") {
    node = parse_macro(line);
  } else if (name == "call") {
    node = parse_call_block(line);
  } else if (name == "filter") {
    node = parse_filter_block(line);
  } else if (name == "with") {
    node = parse_with(line);
  } else if (name == "generation") {  // marks the assistant's text for training; rendering ignores it
    node = make(StatementKind::kScope, line);
    node->body = parse_body("endgeneration", name, line);
  } else if (name == "break" || name == "continue") {
    node = parse_jump(line, name == "break" ? StatementKind::kBreak : StatementKind::kContinue, name);
  } else if (name.substr(0, 3) == "end" || name == "else" || name == "elif") {
    tokens_.fail(line, fmt::format("{{% {} %}} closes nothing that is open here", name));
  } else {
    tokens_.fail(line, fmt::format("{{% {} %}} is not supported in a chat template", name));
  }
  close_block();
  return node;
}

std::unique_ptr<Statement> Parser::parse_if(int line) {
  auto node = make(StatementKind::kIf, line);
  while (true) {
    Statement::Branch branch;
    branch.condition = expressions_.parse_tuple(false);
    close_block();
    branch.body = parse_block({"elif", "else", "endif"}, "if", line);
    node->branches.push_back(std::move(branch));
    if (!tokens_.skip_name("elif")) break;
  }
  if (tokens_.skip_name("else")) {
    close_block();
    node->body = parse_block({"endif"}, "if", line);
  }
  tokens_.skip_name("endif");
  return node;
}

std::unique_ptr<Statement> Parser::parse_for(int line) {
  auto node = make(StatementKind::kFor, line);
  node->target = parse_target(false);
  if (!tokens_.skip_name("in")) tokens_.fail_expecting("'in'");
  node->expression = expressions_.parse_tuple(false, "recursive");
  if (tokens_.skip_name("if")) node->condition = expressions_.parse_expression();
  node->recursive = tokens_.skip_name("recursive");
  close_block();
  ++loops_;
  node->body = parse_block({"else", "endfor"}, "for", line);
  --loops_;
  if (tokens_.skip_name("else")) {
    close_block();
    node->else_body = parse_block({"endfor"}, "for", line);
  }
  tokens_.skip_name("endfor");
  return node;
}

std::unique_ptr<Statement> Parser::parse_jump(int line, StatementKind kind, std::string_view name) {
  if (loops_ == 0) tokens_.fail(line, fmt::format("{{% {} %}} stands outside of a loop", name));
  return make(kind, line);
}

std::unique_ptr<Statement> Parser::parse_set(int line) {
  auto node = make(StatementKind::kSet, line);
  node->target = parse_target(true);
  if (tokens_.skip_operator("=")) {
    node->expression = expressions_.parse_tuple();
    return node;
  }
  node->kind = StatementKind::kSetBlock;
  node->expression = expressions_.parse_filters(nullptr);
  node->body = parse_body("endset", "set", line);
  return node;
}

std::unique_ptr<Statement> Parser::parse_with(int line) {
  auto node = make(StatementKind::kWith, line);
  while (!tokens_.at_end() && !tokens_.is(TokenKind::kCloseBlock)) {
    Statement::Assignment assignment;
    assignment.target = parse_single_target(false);
    tokens_.expect_operator("=");
    assignment.value = expressions_.parse_expression();
    node->assignments.push_back(std::move(assignment));
    if (!tokens_.skip_operator(",")) break;
  }
  node->body = parse_body("endwith", "with", line);
  return node;
}

void Parser::parse_parameters(MacroDefinition& macro) {
  tokens_.expect_operator("(");
  while (!tokens_.failed() && !tokens_.is_operator(")")) {
    Parameter parameter;
    parameter.name = tokens_.expect_name();
    if (tokens_.skip_operator("=")) {
      parameter.fallback = expressions_.parse_expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback != nullptr) {
      tokens_.fail(tokens_.line(), "a parameter without a default follows one with a default");
    }
    macro.parameters.push_back(std::move(parameter));
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator(")");
}

std::unique_ptr<Statement> Parser::parse_macro(int line) {
  auto node = make(StatementKind::kMacro, line);
  node->macro.name = tokens_.expect_name();
  parse_parameters(node->macro);
  expressions_.open_macros().push_back(&node->macro);
  const int loops = std::exchange(loops_, 0);
  node->macro.body = parse_body("endmacro", "macro", line);
  loops_ = loops;
  expressions_.open_macros().pop_back();
  return node;
}

std::unique_ptr<Statement> Parser::parse_call_block(int line) {
  auto node = make(StatementKind::kCallBlock, line);
  node->macro.name = "caller";
  if (tokens_.is_operator("(")) parse_parameters(node->macro);
  node->expression = expressions_.parse_expression();
  if (node->expression->kind != Expression::Kind::kCall) tokens_.fail(line, "{% call %} needs a call");
  expressions_.open_macros().push_back(&node->macro);
  const int loops = std::exchange(loops_, 0);
  node->macro.body = parse_body("endcall", "call", line);
  loops_ = loops;
  expressions_.open_macros().pop_back();
  return node;
}

std::unique_ptr<Statement> Parser::parse_filter_block(int line) {
  auto node = make(StatementKind::kFilterBlock, line);
  node->expression = expressions_.parse_filter_chain(nullptr);
  node->body = parse_body("endfilter", "filter", line);
  return node;
}

Target Parser::parse_single_target(bool allows_attribute) {
  Target target;
  if (tokens_.skip_operator("(")) {
    target = parse_target(allows_attribute);
    tokens_.expect_operator(")");
    return target;
  }
  const int line = tokens_.line();
  target.name = tokens_.expect_name();
  const auto is_target = [&](std::string_view name) { return target.name == name; };
  const auto literals = {"true", "false", "none", "True", "False", "None"};
  if (std::any_of(literals.begin(), literals.end(), is_target)) tokens_.fail(line, fmt::format("cannot assign to '{}'", target.name));
  if (allows_attribute && tokens_.skip_operator(".")) target.attribute = tokens_.expect_name();
  return target;
}

Target Parser::parse_target(bool allows_attribute) {
  if (nesting_ >= kMaxNesting) {
    tokens_.fail(tokens_.line(), "an assignment nests too deeply");
    return {};
  }
  ++nesting_;
  Target first = parse_single_target(allows_attribute);
  if (tokens_.is_operator(",")) {
    Target tuple;
    tuple.parts.push_back(std::move(first));
    while (tokens_.skip_operator(",")) {
      if (!tokens_.is(TokenKind::kName) && !tokens_.is_operator("(")) break;
      if (tokens_.is_name("in")) break;
      tuple.parts.push_back(parse_single_target(allows_attribute));
    }
    first = std::move(tuple);
  }
  --nesting_;
  return first;
}

}  // namespace braid::text::jinja
