// Expressions.
#include "text/jinja/interpreter.h"
#include "text/jinja/native.h"
#include "text/jinja/operators.h"

#include <fmt/format.h>
#include <utility>

namespace braid::text::jinja {

using ExpressionKind = Expression::Kind;

Object Interpreter::evaluate(const Expression& expression) {
  if (expression.kind == ExpressionKind::kConstant) return expression.value;
  runtime_.at_line(expression.line);
  Object value = Undefined{};
  if (runtime_.enter() && runtime_.step() && !runtime_.failed()) value = evaluate_kind(expression);
  runtime_.leave();
  return value;
}

Object Interpreter::evaluate_kind(const Expression& expression) {
  const auto& operands = expression.operands;
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.value;
    case ExpressionKind::kName:
      return evaluate_name(expression);
    case ExpressionKind::kAttribute:
      return get_attribute(runtime_, evaluate(*operands[0]), expression.name);
    case ExpressionKind::kSubscript:
      return evaluate_subscript(expression);
    case ExpressionKind::kSlice: {
      const Object value = evaluate(*operands[0]);
      const Object start = optional(operands[1]);
      const Object stop = optional(operands[2]);
      return get_slice(runtime_, value, start, stop, optional(operands[3]));
    }
    case ExpressionKind::kCall:
      return evaluate_call(expression);
    case ExpressionKind::kFilter:
      return evaluate_filter(expression);
    case ExpressionKind::kTest:
      return evaluate_test(expression);
    case ExpressionKind::kNot:
      return !evaluate(*operands[0]).truth();
    case ExpressionKind::kNegate:
      return negate(runtime_, evaluate(*operands[0]));
    case ExpressionKind::kPositive:
      return positive(runtime_, evaluate(*operands[0]));
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr: {
      Object left = evaluate(*operands[0]);
      return left.truth() == (expression.kind == ExpressionKind::kOr) ? std::move(left) : evaluate(*operands[1]);
    }
    case ExpressionKind::kBinary: {
      const Object left = evaluate(*operands[0]);
      const Object right = evaluate(*operands[1]);
      runtime_.at_line(expression.line);
      return apply_binary(runtime_, expression.op, left, right);
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(expression);
    case ExpressionKind::kConditional:
      return evaluate_conditional(expression);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return evaluate_collection(expression);
    case ExpressionKind::kDict:
      return evaluate_dict(expression);
  }
  return Undefined{};
}

Object Interpreter::evaluate_name(const Expression& expression) {
  if (const Object* value = scope_->find(expression.name)) return *value;
  if (const Native* function = find_global(expression.name)) return make_callable(*function);
  return Undefined{&expression.name};
}

Object Interpreter::evaluate_subscript(const Expression& expression) {
  const Object value = evaluate(*expression.operands[0]);
  const auto& key = *expression.operands[1];
  Object item = get_item(runtime_, value, evaluate(key));
  const bool named = item.is_undefined() && key.kind == ExpressionKind::kConstant && key.value.text() != nullptr;
  return named ? Object(Undefined{key.value.text()}) : item;
}

Object Interpreter::evaluate_compare(const Expression& expression) {
  Object left = evaluate(*expression.operands[0]);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Object right = evaluate(*expression.operands[i + 1]);
    runtime_.at_line(expression.line);
    if (runtime_.failed() || !apply_comparison(runtime_, expression.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Object Interpreter::evaluate_conditional(const Expression& expression) {
  const auto& operands = expression.operands;
  if (evaluate(*operands[0]).truth()) return evaluate(*operands[1]);
  return operands[2] == nullptr ? Object(Undefined{}) : evaluate(*operands[2]);
}

Object Interpreter::evaluate_collection(const Expression& expression) {
  std::vector<Object> items;
  items.reserve(expression.operands.size());
  for (const auto& operand : expression.operands) items.push_back(evaluate(*operand));
  return runtime_.sequence(std::move(items), expression.kind == ExpressionKind::kList ? Sequence::Kind::kList : Sequence::Kind::kTuple);
}

Object Interpreter::evaluate_dict(const Expression& expression) {
  auto members = std::make_shared<Dict>();
  for (std::size_t i = 0; i + 1 < expression.operands.size(); i += 2) {
    Object key = evaluate(*expression.operands[i]);
    runtime_.set(*members, std::move(key), evaluate(*expression.operands[i + 1]));
  }
  return runtime_.dict(std::move(members));
}

void Interpreter::evaluate_arguments(const std::vector<Argument>& arguments, Callable::Call& call) {
  for (const auto& argument : arguments) {
    Object value = evaluate(*argument.value);
    switch (argument.kind) {
      case Argument::Kind::kPositional:
        call.positional.push_back(std::move(value));
        break;
      case Argument::Kind::kNamed:
        call.named.emplace_back(argument.name, std::move(value));
        break;
      case Argument::Kind::kSpreadList:
        for (auto& item : runtime_.iterate(value)) call.positional.push_back(std::move(item));
        break;
      case Argument::Kind::kSpreadDict: {
        if (value.dict() == nullptr) {
          runtime_.fail(fmt::format("'**' needs a dict, not {}", type_name(value)));
          break;
        }
        for (const auto& [key, member] : value.dict()->items()) call.named.emplace_back(runtime_.to_text(key), member);
        break;
      }
    }
  }
}

Object Interpreter::evaluate_call(const Expression& expression, Object caller) {
  const Object callee = evaluate(*expression.operands[0]);
  Callable::Call call;
  evaluate_arguments(expression.arguments, call);
  if (!caller.is_missing()) call.named.emplace_back("caller", std::move(caller));
  if (runtime_.failed()) return Undefined{};
  runtime_.at_line(expression.line);
  if (callee.is_undefined()) return runtime_.fail_undefined(callee);
  if (callee.callable() == nullptr) return runtime_.fail(fmt::format("a value of type {} cannot be called", type_name(callee)));
  return callee.callable()->call(runtime_, call);
}

Object Interpreter::evaluate_filter(const Expression& expression) {
  const Native* filter = find_filter(expression.name);
  if (filter == nullptr) return runtime_.fail(fmt::format("there is no filter '{}'", expression.name));
  Callable::Call call;
  const auto& input = expression.operands[0];
  call.positional.push_back(input == nullptr ? std::exchange(filter_input_, {}) : evaluate(*input));
  evaluate_arguments(expression.arguments, call);
  if (runtime_.failed()) return Undefined{};
  runtime_.at_line(expression.line);
  return run_native(runtime_, *filter, std::move(call));
}

Object Interpreter::evaluate_test(const Expression& expression) {
  const Native* test = find_test(expression.name);
  if (test == nullptr) return runtime_.fail(fmt::format("there is no test '{}'", expression.name));
  Callable::Call call;
  call.positional.push_back(evaluate(*expression.operands[0]));
  evaluate_arguments(expression.arguments, call);
  if (runtime_.failed()) return Undefined{};
  runtime_.at_line(expression.line);
  return run_native(runtime_, *test, std::move(call));
}

}  // namespace braid::text::jinja
