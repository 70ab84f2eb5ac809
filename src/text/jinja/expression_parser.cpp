#include "text/jinja/expression_parser.h"

#include "text/jinja/object_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace braid::text::jinja {
namespace {

using ExpressionKind = Expression::Kind;
using TokenKind = Token::Kind;

std::optional<Operator> comparison(const Token& token) {
  static constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators = {{{"==", Operator::kEqual},
                                                                                       {"!=", Operator::kNotEqual},
                                                                                       {"<", Operator::kLess},
                                                                                       {"<=", Operator::kLessEqual},
                                                                                       {">", Operator::kGreater},
                                                                                       {">=", Operator::kGreaterEqual}}};
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  for (const auto& [text, op] : kOperators)
    if (token.text == text) return op;
  return std::nullopt;
}

bool starts_test_argument(const Token& token) {
  switch (token.kind) {
    case TokenKind::kName:
      return token.text != "else" && token.text != "or" && token.text != "and" && token.text != "if" && token.text != "in" &&
             token.text != "not" && token.text != "is";
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kOperator:
      return token.text == "(" || token.text == "[" || token.text == "{";
    case TokenKind::kText:
    case TokenKind::kOpenPrint:
    case TokenKind::kClosePrint:
    case TokenKind::kOpenBlock:
    case TokenKind::kCloseBlock:
    case TokenKind::kEnd:
      break;
  }
  return false;
}

}  // namespace

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, ExpressionPtr first, ExpressionPtr second) {
  auto node = make(kind, line);
  adopt(*node, std::move(first));
  if (second != nullptr) adopt(*node, std::move(second));
  return node;
}

ExpressionPtr ExpressionParser::constant(int line, Object value) {
  auto node = make(ExpressionKind::kConstant, line);
  node->value = std::move(value);
  return node;
}

void ExpressionParser::raise(Expression& parent, int child_height) {
  parent.height = std::max(parent.height, child_height + 1);
  if (parent.height > kMaxHeight) tokens_.fail(parent.line, "an expression is too long or nests too deeply");
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr child) {
  if (child != nullptr) raise(parent, child->height);
  parent.operands.push_back(std::move(child));
}

bool ExpressionParser::enter() {
  if (nesting_ < kMaxNesting) return true;
  tokens_.fail(tokens_.line(), "an expression nests too deeply");
  return false;
}

ExpressionPtr ExpressionParser::parse_expression() {
  const int line = tokens_.line();
  if (!enter()) return constant(line, Object::None{});
  ++nesting_;
  auto value = parse_or();
  while (tokens_.skip_name("if")) {
    auto condition = parse_or();
    auto node = make(ExpressionKind::kConditional, line, std::move(condition), std::move(value));
    adopt(*node, tokens_.skip_name("else") ? parse_expression() : nullptr);
    value = std::move(node);
  }
  --nesting_;
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  auto left = parse_and();
  while (tokens_.is_name("or")) {
    const int line = tokens_.take().line;
    left = make(ExpressionKind::kOr, line, std::move(left), parse_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  auto left = parse_not();
  while (tokens_.is_name("and")) {
    const int line = tokens_.take().line;
    left = make(ExpressionKind::kAnd, line, std::move(left), parse_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_compare();
  const int line = tokens_.take().line;
  if (!enter()) return constant(line, Object::None{});
  ++nesting_;
  auto node = make(ExpressionKind::kNot, line, parse_not());
  --nesting_;
  return node;
}

ExpressionPtr ExpressionParser::parse_compare() {
  const int line = tokens_.line();
  auto first = parse_sum();
  ExpressionPtr node;
  while (true) {
    auto op = comparison(tokens_.current());
    if (op || tokens_.is_name("in")) {
      tokens_.take();
      if (!op) op = Operator::kIn;
    } else if (tokens_.is_name("not") && tokens_.ahead().kind == TokenKind::kName && tokens_.ahead().text == "in") {
      tokens_.take();
      tokens_.take();
      op = Operator::kNotIn;
    } else {
      break;
    }
    if (node == nullptr) node = make(ExpressionKind::kCompare, line, std::move(first));
    node->operators.push_back(*op);
    adopt(*node, parse_sum());
  }
  return node == nullptr ? std::move(first) : std::move(node);
}

ExpressionPtr ExpressionParser::parse_sum() {
  auto left = parse_concat();
  while (tokens_.is_operator("+") || tokens_.is_operator("-")) {
    const Token token = tokens_.take();
    left = make(ExpressionKind::kBinary, token.line, std::move(left), parse_concat());
    left->op = token.text == "+" ? Operator::kAdd : Operator::kSubtract;
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concat() {
  auto left = parse_product();
  while (tokens_.is_operator("~")) {
    const int line = tokens_.take().line;
    left = make(ExpressionKind::kBinary, line, std::move(left), parse_product());
    left->op = Operator::kConcat;
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_product() {
  auto left = parse_power();
  while (tokens_.is_operator("*") || tokens_.is_operator("/") || tokens_.is_operator("//") || tokens_.is_operator("%")) {
    const Token token = tokens_.take();
    left = make(ExpressionKind::kBinary, token.line, std::move(left), parse_power());
    left->op = token.text == "*"   ? Operator::kMultiply
               : token.text == "/" ? Operator::kDivide
               : token.text == "%" ? Operator::kModulo
                                   : Operator::kFloorDivide;
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  auto left = parse_unary();
  while (tokens_.is_operator("**")) {
    const int line = tokens_.take().line;
    left = make(ExpressionKind::kBinary, line, std::move(left), parse_unary());
    left->op = Operator::kPower;
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filter) {
  ExpressionPtr node;
  const int line = tokens_.line();
  if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
    const bool negates = tokens_.take().text == "-";
    if (!enter()) return constant(line, Object::None{});
    ++nesting_;
    node = make(negates ? ExpressionKind::kNegate : ExpressionKind::kPositive, line, parse_unary(false));
    --nesting_;
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::parse_primary() {
  const int line = tokens_.line();
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString: {
      std::string value;
      while (tokens_.is(TokenKind::kString)) value += tokens_.take().text;
      return constant(line, Object::from_text(std::move(value)));
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kText:
    case TokenKind::kOpenPrint:
    case TokenKind::kClosePrint:
    case TokenKind::kOpenBlock:
    case TokenKind::kCloseBlock:
    case TokenKind::kOperator:
    case TokenKind::kEnd:
      break;
  }
  if (tokens_.skip_operator("(")) {
    auto value = parse_tuple(true, ")");
    tokens_.expect_operator(")");
    return value;
  }
  if (tokens_.is_operator("[")) return parse_list();
  if (tokens_.is_operator("{")) return parse_dict();
  tokens_.fail_expecting("an expression");
  return constant(line, Object::None{});
}

ExpressionPtr ExpressionParser::parse_name() {
  Token token = tokens_.take();
  if (token.text == "true" || token.text == "True") return constant(token.line, true);
  if (token.text == "false" || token.text == "False") return constant(token.line, false);
  if (token.text == "none" || token.text == "None") return constant(token.line, Object::None{});
  for (auto* macro : open_macros_) {
    macro->takes_caller = macro->takes_caller || token.text == "caller";
    macro->takes_varargs = macro->takes_varargs || token.text == "varargs";
    macro->takes_kwargs = macro->takes_kwargs || token.text == "kwargs";
  }
  auto node = make(ExpressionKind::kName, token.line);
  node->name = std::move(token.text);
  return node;
}

ExpressionPtr ExpressionParser::parse_number() {
  const Token token = tokens_.take();
  const char* end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    read_float(token.text, value);
    return constant(token.line, value);
  }
  std::int64_t value = 0;
  if (std::from_chars(token.text.data(), end, value).ec != std::errc()) tokens_.fail(token.line, "a number is out of range");
  return constant(token.line, value);
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  if (tokens_.is(TokenKind::kCloseBlock) || tokens_.is(TokenKind::kClosePrint) || tokens_.at_end() || tokens_.is_operator(")")) return true;
  return !end.empty() && tokens_.is_name(end);
}

ExpressionPtr ExpressionParser::parse_tuple(bool with_conditional, std::string_view end) {
  const int line = tokens_.line();
  std::vector<ExpressionPtr> items;
  bool is_tuple = end == ")" && tokens_.is_operator(")");
  while (!at_tuple_end(end)) {
    items.push_back(with_conditional ? parse_expression() : parse_or());
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && items.empty()) tokens_.fail_expecting("an expression");
  if (!is_tuple && !items.empty()) return std::move(items.front());
  auto node = make(ExpressionKind::kTuple, line);
  for (auto& item : items) adopt(*node, std::move(item));
  return node;
}

ExpressionPtr ExpressionParser::parse_list() {
  auto node = make(ExpressionKind::kList, tokens_.take().line);
  while (!tokens_.failed() && !tokens_.is_operator("]")) {
    adopt(*node, parse_expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("]");
  return node;
}

ExpressionPtr ExpressionParser::parse_dict() {
  auto node = make(ExpressionKind::kDict, tokens_.take().line);
  while (!tokens_.failed() && !tokens_.is_operator("}")) {
    adopt(*node, parse_expression());
    tokens_.expect_operator(":");
    adopt(*node, parse_expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return node;
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (tokens_.is_operator(".") || tokens_.is_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (tokens_.is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (tokens_.is_operator("|")) {
      node = parse_filters(std::move(node));
    } else if (tokens_.is_name("is")) {
      node = parse_test(std::move(node));
    } else if (tokens_.is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr node) {
  const Token open = tokens_.take();
  if (open.text == ".") {
    if (tokens_.is(TokenKind::kInteger)) return make(ExpressionKind::kSubscript, open.line, std::move(node), parse_number());
    auto result = make(ExpressionKind::kAttribute, open.line, std::move(node));
    result->name = tokens_.expect_name();
    return result;
  }
  const auto part = [&]() -> ExpressionPtr { return tokens_.is_operator(":") || tokens_.is_operator("]") ? nullptr : parse_expression(); };
  auto first = part();
  if (!tokens_.is_operator(":")) {
    if (first == nullptr) tokens_.fail_expecting("an expression");
    tokens_.expect_operator("]");
    return make(ExpressionKind::kSubscript, open.line, std::move(node),
                first == nullptr ? constant(open.line, Object::None{}) : std::move(first));
  }
  auto result = make(ExpressionKind::kSlice, open.line, std::move(node));
  adopt(*result, std::move(first));
  tokens_.expect_operator(":");
  adopt(*result, part());
  adopt(*result, tokens_.skip_operator(":") ? part() : nullptr);
  tokens_.expect_operator("]");
  return result;
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr input) {
  while (tokens_.skip_operator("|")) input = parse_filter(std::move(input));
  return input;
}

ExpressionPtr ExpressionParser::parse_filter_chain(ExpressionPtr input) { return parse_filters(parse_filter(std::move(input))); }

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  auto node = make(ExpressionKind::kFilter, tokens_.line());
  adopt(*node, std::move(input));
  node->name = tokens_.expect_name();
  if (tokens_.is_operator("(")) node->arguments = parse_arguments();
  for (const auto& argument : node->arguments) raise(*node, argument.value->height);
  return node;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr node) {
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  auto test = make(ExpressionKind::kTest, line, std::move(node));
  test->name = tokens_.expect_name();
  if (tokens_.is_operator("(")) {
    test->arguments = parse_arguments();
  } else if (starts_test_argument(tokens_.current())) {
    test->arguments.push_back({Argument::Kind::kPositional, {}, parse_postfix(parse_primary())});
  }
  if (tokens_.is_name("is")) tokens_.fail(tokens_.line(), "one test follows another; join them with 'and'");
  for (const auto& argument : test->arguments) raise(*test, argument.value->height);
  return negated ? make(ExpressionKind::kNot, line, std::move(test)) : std::move(test);
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  auto node = make(ExpressionKind::kCall, tokens_.line(), std::move(callee));
  node->arguments = parse_arguments();
  for (const auto& argument : node->arguments) raise(*node, argument.value->height);
  return node;
}

std::vector<Argument> ExpressionParser::parse_arguments() {
  std::vector<Argument> arguments;
  tokens_.expect_operator("(");
  while (!tokens_.failed() && !tokens_.is_operator(")")) {
    Argument argument;
    if (tokens_.skip_operator("*")) {
      argument.kind = Argument::Kind::kSpreadList;
    } else if (tokens_.skip_operator("**")) {
      argument.kind = Argument::Kind::kSpreadDict;
    } else if (tokens_.is(TokenKind::kName) && tokens_.ahead().kind == TokenKind::kOperator && tokens_.ahead().text == "=") {
      argument.kind = Argument::Kind::kNamed;
      argument.name = tokens_.take().text;
      tokens_.take();
    } else if (!arguments.empty() && arguments.back().kind != Argument::Kind::kPositional) {
      tokens_.fail(tokens_.line(), "a positional argument follows a named one");
    }
    argument.value = parse_expression();
    arguments.push_back(std::move(argument));
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator(")");
  return arguments;
}

}  // namespace braid::text::jinja
