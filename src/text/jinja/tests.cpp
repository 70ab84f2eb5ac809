// What stands behind "is".
#include "text/jinja/native.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode_text.h"

#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

using SequenceKind = Sequence::Kind;

template <bool (*kHolds)(const Object&)>
Object run_type(Runtime&, Arguments& arguments) {
  return kHolds(arguments[0]);
}

bool is_defined(const Object& value) { return !value.is_undefined(); }
bool is_undefined(const Object& value) { return value.is_undefined(); }
bool is_none(const Object& value) { return value.is_none(); }
bool is_text(const Object& value) { return value.text() != nullptr; }
bool is_number(const Object& value) { return value.is_number(); }
bool is_integer(const Object& value) { return value.integer() != nullptr; }
bool is_float(const Object& value) { return value.is_float(); }
bool is_boolean(const Object& value) { return value.is_bool(); }
bool is_true(const Object& value) { return value.is_bool() && value.truth(); }
bool is_false(const Object& value) { return value.is_bool() && !value.truth(); }
bool is_mapping(const Object& value) { return value.dict() != nullptr; }
bool is_iterable(const Object& value) {
  return value.is_undefined() || is_text(value) || value.dict() != nullptr || value.sequence() != nullptr;
}
bool is_sequence(const Object& value) {
  return is_iterable(value) && (value.sequence() == nullptr || value.sequence()->kind <= SequenceKind::kRange);
}
bool is_callable(const Object& value) { return value.is_undefined() || value.callable() != nullptr; }
bool is_escaped(const Object&) { return false; }

template <Operator kOperator>
Object run_comparison(Runtime& runtime, Arguments& arguments) {
  return apply_comparison(runtime, kOperator, arguments[0], arguments[1]);
}

Object run_same(Runtime& runtime, Arguments& arguments) {
  const auto& left = arguments[0];
  const auto& right = arguments[1];
  if (left.sequence() != nullptr || left.dict() != nullptr) return left.sequence() == right.sequence() && left.dict() == right.dict();
  return left.storage().index() == right.storage().index() && runtime.equal(left, right);
}

// Whether the number leaves this rest when it is divided by 2; a float may leave another.
template <std::int64_t kRest>
Object run_parity(Runtime& runtime, Arguments& arguments) {
  if (!arguments[0].is_number()) return runtime.fail(fmt::format("odd and even test numbers, not a {}", type_name(arguments[0])));
  return runtime.equal(apply_binary(runtime, Operator::kModulo, arguments[0], std::int64_t{2}), kRest);
}
Object run_divisible(Runtime& runtime, Arguments& arguments) {
  const Object rest = apply_binary(runtime, Operator::kModulo, arguments[0], arguments[1]);
  return !rest.truth();
}

Object run_lower(Runtime& runtime, Arguments& arguments) { return has_only_case(runtime.to_text(arguments[0]), is_lower, is_upper); }
Object run_upper(Runtime& runtime, Arguments& arguments) { return has_only_case(runtime.to_text(arguments[0]), is_upper, is_lower); }

Object run_is_filter(Runtime&, Arguments& arguments) { return is_text(arguments[0]) && find_filter(*arguments[0].text()) != nullptr; }
Object run_is_test(Runtime&, Arguments& arguments) { return is_text(arguments[0]) && find_test(*arguments[0].text()) != nullptr; }

constexpr Native kTests[] = {
    {"defined", "value", run_type<is_defined>},
    {"undefined", "value", run_type<is_undefined>},
    {"none", "value", run_type<is_none>},
    {"string", "value", run_type<is_text>},
    {"number", "value", run_type<is_number>},
    {"integer", "value", run_type<is_integer>},
    {"float", "value", run_type<is_float>},
    {"boolean", "value", run_type<is_boolean>},
    {"true", "value", run_type<is_true>},
    {"false", "value", run_type<is_false>},
    {"mapping", "value", run_type<is_mapping>},
    {"sequence", "value", run_type<is_sequence>},
    {"iterable", "value", run_type<is_iterable>},
    {"callable", "value", run_type<is_callable>},
    {"escaped", "value", run_type<is_escaped>},
    {"eq", "value other", run_comparison<Operator::kEqual>},
    {"equalto", "value other", run_comparison<Operator::kEqual>},
    {"==", "value other", run_comparison<Operator::kEqual>},
    {"ne", "value other", run_comparison<Operator::kNotEqual>},
    {"!=", "value other", run_comparison<Operator::kNotEqual>},
    {"lt", "value other", run_comparison<Operator::kLess>},
    {"lessthan", "value other", run_comparison<Operator::kLess>},
    {"<", "value other", run_comparison<Operator::kLess>},
    {"le", "value other", run_comparison<Operator::kLessEqual>},
    {"<=", "value other", run_comparison<Operator::kLessEqual>},
    {"gt", "value other", run_comparison<Operator::kGreater>},
    {"greaterthan", "value other", run_comparison<Operator::kGreater>},
    {">", "value other", run_comparison<Operator::kGreater>},
    {"ge", "value other", run_comparison<Operator::kGreaterEqual>},
    {">=", "value other", run_comparison<Operator::kGreaterEqual>},
    {"in", "value seq", run_comparison<Operator::kIn>},
    {"sameas", "value other", run_same},
    {"odd", "value", run_parity<1>},
    {"even", "value", run_parity<0>},
    {"divisibleby", "value num", run_divisible},
    {"lower", "value", run_lower},
    {"upper", "value", run_upper},
    {"filter", "value", run_is_filter},
    {"test", "value", run_is_test},
};

}  // namespace

const Native* find_test(std::string_view name) { return find_in(kTests, name); }

}  // namespace braid::text::jinja
