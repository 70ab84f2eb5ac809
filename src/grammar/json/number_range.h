// Decimal numbers within bounds, as grammar expressions.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "grammar/grammar.h"

#include <cstdint>
#include <optional>

namespace braid::grammar::json {

struct NumberBounds {
  std::optional<Value> least;  // an integer or a real number
  std::optional<Value> most;
  bool least_excluded = false;
  bool most_excluded = false;

  bool any() const { return least || most; }
};

// Whole numbers in order of magnitude up to 18 digits, or to the lower bound where that has more. Matches nothing
// when no number is in between.
ExprId integers_within(Grammar& grammar, const NumberBounds& bounds);

// Numbers without exponent. Where a bound has more digits than a double tells apart, those next to it are left out.
ExprId numbers_within(Grammar& grammar, const NumberBounds& bounds);

// Numbers, or whole numbers, that a decimal fraction divides, with as many places as that has. kInvalidArgument without param for a
// divisor that is not above zero or has too many digits.
Result<ExprId> multiples_within(Grammar& grammar, const NumberBounds& bounds, const Value& divisor, bool whole);

}  // namespace braid::grammar::json
