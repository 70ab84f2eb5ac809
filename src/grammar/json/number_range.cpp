#include "grammar/json/number_range.h"

#include "grammar/json/digits.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kUsualDigits = 18;     // of integers, as in those without bounds
constexpr std::size_t kDistinctDigits = 15;  // a double tells all numbers of so many digits apart
constexpr std::size_t kUsualFraction = 6;
constexpr std::size_t kFurtherPlaces = 2;  // than a bound has: there is room between two that lie close together
constexpr std::size_t kMostFraction = 30;
constexpr std::uint32_t kSmallModulus = 100;
constexpr std::uint32_t kMaxModulus = 1000;

std::size_t significant_digits(const Decimal& number) {
  const std::string digits = number.whole + number.fraction;
  const std::size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? 0 : digits.find_last_not_of('0') + 1 - first;
}

// As it is, or the next double inwards where it is excluded and numbers next to it may be read as the same double: where they, as `fine`
// says, or it have many digits.
struct Bound {
  Decimal at;
  bool excluded = false;
};

Bound bound_of(const Value& value, bool excluded, bool least, bool fine = false) {
  const Decimal exact = decimal_of(value);
  // What has been read as a double may lie on the wrong side of it: in a request it may have had further digits.
  const auto* real = value.get_if<double>();
  const bool rounded = real != nullptr && (std::fabs(*real) >= 0x1p63 || significant_digits(exact) > kDistinctDigits);
  if ((!excluded || (exact.size() <= kDistinctDigits && !fine)) && !rounded) return {exact, excluded};
  const double away = least ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  double next = std::nextafter(*value.number(), away);
  if (!std::isfinite(next)) return {exact, excluded};
  return {decimal_of(Value(next)), false};
}

// Both ends, where there are any.
struct Interval {
  std::optional<Bound> least;
  std::optional<Bound> most;
};

// As bound_of() has them, unless nothing lies between them so that does between the bounds themselves.
Interval interval_of(const NumberBounds& bounds, bool fine = false) {
  Interval out;
  if (bounds.least) out.least = bound_of(*bounds.least, bounds.least_excluded, true, fine);
  if (bounds.most) out.most = bound_of(*bounds.most, bounds.most_excluded, false, fine);
  if (!out.least || !out.most || !less(out.most->at, out.least->at)) return out;
  return {Bound{decimal_of(*bounds.least), bounds.least_excluded}, Bound{decimal_of(*bounds.most), bounds.most_excluded}};
}

// The whole numbers of one sign, without it.
struct Magnitudes {
  std::string least = "0";
  std::optional<std::string> most;
};

ExprId naturals(Grammar& grammar, const Magnitudes& range, std::uint32_t modulus, std::size_t point = 0) {
  const std::size_t usual = std::max(range.least.size(), modulus == 1 ? kUsualDigits : modulus <= kSmallModulus ? 9 : 6);
  const std::string last = !range.most || range.most->size() > usual ? std::string(usual, '9') : *range.most;
  std::vector<ExprId> options;
  const auto padded = [&](std::string digits) {
    return digits.size() > point ? digits : std::string(point + 1 - digits.size(), '0') + digits;
  };
  if (less_whole(last, range.least)) return grammar.nothing();
  const std::string first = padded(range.least);
  const std::string end = padded(last);
  const auto add = [&](std::size_t length) {
    DigitRange digits;
    digits.least = length == first.size() ? first : "1" + std::string(length - 1, '0');
    digits.most = length == end.size() ? end : std::string(length, '9');
    digits.modulus = modulus;
    digits.point = point;
    options.push_back(digits_within(grammar, digits, true, true));
  };
  add(first.size());
  if (modulus == 1 && point == 0 && end.size() > first.size() + 2) {  // those between are any, which takes few states
    const ExprId further = grammar.repeat(grammar.chars(CodePointSet::of("0123456789")), static_cast<std::uint32_t>(first.size()),
                                          static_cast<std::uint32_t>(end.size() - 2));
    options.push_back(grammar.sequence({grammar.chars(CodePointSet::of("123456789")), further}));
  } else {
    for (std::size_t length = first.size() + 1; length < end.size(); ++length) add(length);
  }
  if (end.size() > first.size()) add(end.size());
  return grammar.choice(std::move(options));
}

// A bound on the scale of 10^places, rounded inwards to a whole number.
struct WholeBound {
  bool negative = false;
  std::string digits;
};

WholeBound whole_bound(const Bound& bound, bool least, std::size_t places) {
  std::string digits = bound.at.whole;
  std::string rest = bound.at.fraction;
  rest.resize(std::max(rest.size(), places), '0');
  digits += rest.substr(0, places);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const bool exact = rest.find_first_not_of('0', places) == std::string::npos;
  const bool outwards = bound.at.negative != least;  // away from zero is inwards
  if (exact ? bound.excluded : outwards) {
    if (outwards) {
      digits = next_whole(digits);
    } else if (digits == "0") {
      return {!bound.at.negative, "1"};  // on the other side of zero
    } else {
      digits = previous_whole(digits);
    }
  }
  return {bound.at.negative && digits != "0", digits};
}

ExprId scaled_within(Grammar& grammar, const NumberBounds& bounds, std::uint32_t modulus, std::size_t places) {
  const Interval interval = interval_of(bounds);
  const auto least = interval.least ? std::optional(whole_bound(*interval.least, true, places)) : std::nullopt;
  const auto most = interval.most ? std::optional(whole_bound(*interval.most, false, places)) : std::nullopt;
  std::vector<ExprId> options;
  if (!most || !most->negative) {
    Magnitudes range;
    if (least && !least->negative) range.least = least->digits;
    if (most) range.most = most->digits;
    options.push_back(naturals(grammar, range, modulus, places));
  }
  if (!least || least->negative) {
    Magnitudes range;
    range.least = most && most->negative ? most->digits : "1";
    if (least) range.most = least->digits;
    options.push_back(grammar.sequence({grammar.bytes("-"), naturals(grammar, range, modulus, places)}));
  }
  return grammar.choice(std::move(options));
}

// Numbers of one sign, without it.
struct RealMagnitudes {
  Bound least;
  Bound most;
};

// `places` digits after the point; what a bound has beyond them is rounded inwards.
Bound cut(Bound bound, std::size_t places, bool upwards) {
  if (bound.at.fraction.size() <= places) return bound;
  std::string digits = bound.at.whole + bound.at.fraction.substr(0, places);
  if (upwards) digits = next_whole(digits);
  bound.at.whole = digits.substr(0, digits.size() - places);
  bound.at.fraction = digits.substr(digits.size() - places);
  bound.excluded = false;
  return bound;
}

// At most `places` digits after the point.
ExprId magnitudes(Grammar& grammar, const RealMagnitudes& range, std::size_t places) {
  const Bound least = cut(range.least, places, true);
  const Bound most = cut(range.most, places, false);
  DigitRange fraction;
  const auto padded = [&](std::string digits) {
    digits.resize(places, '0');
    return digits;
  };
  fraction.least = padded(least.at.fraction);
  fraction.most = padded(most.at.fraction);
  fraction.least_excluded = least.excluded;
  fraction.most_excluded = most.excluded;
  fraction.may_end = true;
  const auto with_fraction = [&](ExprId whole, bool on_least, bool on_most) {
    std::vector<ExprId> options;
    if (fraction.holds_empty(on_least, on_most)) options.push_back(grammar.empty());
    options.push_back(grammar.sequence({grammar.bytes("."), digits_within(grammar, fraction, on_least, on_most)}));
    return grammar.sequence({whole, grammar.choice(std::move(options))});
  };
  if (less_whole(most.at.whole, least.at.whole)) return grammar.nothing();
  if (least.at.whole == most.at.whole)
    return fraction.least > fraction.most ? grammar.nothing() : with_fraction(grammar.bytes(least.at.whole), true, true);
  std::vector<ExprId> options = {with_fraction(grammar.bytes(least.at.whole), true, false),
                                 with_fraction(grammar.bytes(most.at.whole), false, true)};
  const Magnitudes between = {next_whole(least.at.whole), previous_whole(most.at.whole)};
  if (!less_whole(*between.most, between.least)) options.push_back(with_fraction(naturals(grammar, between, 1), false, false));
  return grammar.choice(std::move(options));
}

}  // namespace

ExprId integers_within(Grammar& grammar, const NumberBounds& bounds) { return scaled_within(grammar, bounds, 1, 0); }

ExprId numbers_within(Grammar& grammar, const NumberBounds& bounds) {
  const auto places_of = [](const std::optional<Value>& bound) { return bound ? decimal_of(*bound).fraction.size() : 0; };
  const auto length_of = [](const std::optional<Value>& bound) { return bound ? decimal_of(*bound).whole.size() : 1; };
  const bool fine = std::max(places_of(bounds.least), places_of(bounds.most)) + kFurtherPlaces +
                        std::max(length_of(bounds.least), length_of(bounds.most)) >
                    kDistinctDigits;
  const auto [least, most] = interval_of(bounds, fine);
  const auto fraction = [](const std::optional<Bound>& bound) { return bound ? bound->at.fraction.size() : 0; };
  const auto whole = [](const std::optional<Bound>& bound) { return bound ? bound->at.whole.size() : 1; };
  const std::size_t needed = std::clamp(std::max(fraction(least), fraction(most)) + kFurtherPlaces, std::size_t{1}, kMostFraction);
  const std::size_t length = std::max(whole(least), whole(most));
  const std::size_t places = std::max(needed, std::min(kUsualFraction, kDistinctDigits - std::min(kDistinctDigits - 1, length)));
  // Beyond all numbers with the digits that are left; excluded, so its own fraction does not matter.
  Bound end;
  end.at.whole = "1" + std::string(std::max(length, kDistinctDigits - std::min(kDistinctDigits, places)), '0');
  end.excluded = true;

  std::vector<ExprId> options;
  if (!most || !most->at.negative) {
    RealMagnitudes range = {Bound{}, most ? *most : end};
    if (least && !least->at.negative) range.least = *least;
    options.push_back(magnitudes(grammar, range, places));
  }
  if (!least || least->at.negative) {
    RealMagnitudes range = {Bound{{}, true}, least ? *least : end};  // no -0
    if (most && most->at.negative) range.least = *most;
    options.push_back(grammar.sequence({grammar.bytes("-"), magnitudes(grammar, range, places)}));
  }
  return grammar.choice(std::move(options));
}

Result<ExprId> multiples_within(Grammar& grammar, const NumberBounds& bounds, const Value& divisor, bool whole) {
  const Decimal step = decimal_of(divisor);
  std::string digits = (step.whole == "0" ? "" : step.whole) + step.fraction;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (step.negative || digits.empty()) return invalid_argument("a divisor is above zero");
  if (digits.size() > 4 || std::stoul(digits) > kMaxModulus || step.fraction.size() > kUsualFraction)
    return invalid_argument(fmt::format("divisors of up to {} are supported, with up to {} places", kMaxModulus, kUsualFraction));
  const auto modulus = static_cast<std::uint32_t>(std::stoul(digits));
  if (!whole) return scaled_within(grammar, bounds, modulus, step.fraction.size());
  std::uint32_t scale = 1;
  for (std::size_t i = 0; i < step.fraction.size(); ++i) scale *= 10;
  return scaled_within(grammar, bounds, modulus / std::gcd(modulus, scale), 0);
}

}  // namespace braid::grammar::json
