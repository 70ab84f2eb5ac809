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

// Whole numbers in order of magnitude up to 18 digits, or to the bound where that has more. Matches nothing when no number is in
// between.
ExprId integers_within(Grammar& grammar, const NumberBounds& bounds);

// Numbers without exponent, with so few digits (15) that different texts are different numbers. kInvalidArgument without param for
// bounds that need more digits.
Result<ExprId> numbers_within(Grammar& grammar, const NumberBounds& bounds);

}  // namespace braid::grammar::json
