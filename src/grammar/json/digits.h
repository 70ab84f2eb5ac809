// Numbers as strings of decimal digits, of any length.
#pragma once

#include "braid/value.h"
#include "grammar/grammar.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace braid::grammar::json {

// A number without exponent.
struct Decimal {
  bool negative = false;
  std::string whole = "0";  // without leading zeros
  std::string fraction;     // without trailing zeros

  bool zero() const { return whole == "0" && fraction.empty(); }
  std::size_t size() const { return whole.size() + fraction.size(); }
  bool operator==(const Decimal&) const = default;
};

// Of an integer, or the shortest text that is read as this real number, which is finite.
Decimal decimal_of(const Value& number);
bool less(const Decimal& a, const Decimal& b);

// Of whole numbers without leading zeros: the one that comes next, whether one is smaller, and digits that stand for no number above.
std::string next_whole(std::string digits);
std::string previous_whole(std::string digits);  // of a number above zero
bool less_whole(const std::string& a, const std::string& b);

// Digit strings between two others of the same length, compared as text.
struct DigitRange {
  std::string least;
  std::string most;
  bool least_excluded = false;
  bool most_excluded = false;
  bool may_end = false;       // a fraction: it may end early, which stands for zeros, but has a digit
  std::uint32_t modulus = 1;  // only those that it divides, read as whole numbers; not with may_end
  std::size_t point = 0;      // a decimal point stands before the last `point` digits

  // Whether the empty text is within them, when the digits before it are those of the bounds it is still `on`.
  bool holds_empty(bool on_least, bool on_most) const;
};

// The digits that go on from those of the bounds that the text before them is still on.
ExprId digits_within(Grammar& grammar, const DigitRange& range, bool on_least, bool on_most);

}  // namespace braid::grammar::json
