#include "grammar/json/number_range.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <vector>

namespace braid::grammar::json {
namespace {

constexpr std::uint64_t kUsualMost = 999'999'999'999'999'999;  // 18 digits, as in integers without bounds
constexpr std::size_t kMaxDigits = 15;                         // of a bounded number: a double tells all of them apart
constexpr std::size_t kUsualFraction = 6;

// Digit strings of one length between two others, compared as text. A fraction may end early, which stands for zeros.
class DigitRange {
 public:
  DigitRange(Grammar& grammar, std::string least, std::string most, bool may_end, bool least_excluded, bool most_excluded)
      : grammar_(grammar), least_(std::move(least)), most_(std::move(most)), may_end_(may_end), least_excluded_(least_excluded),
        most_excluded_(most_excluded) {}

  ExprId from(std::size_t at, bool on_least, bool on_most, bool may_be_empty = true) {
    if (at == least_.size()) return ends(at, on_least, on_most) ? grammar_.empty() : grammar_.nothing();
    const auto left = static_cast<std::uint32_t>(least_.size() - at);
    if (!on_least && !on_most) return grammar_.repeat(digits('0', '9'), may_end_ ? (may_be_empty ? 0 : 1) : left, left);
    std::vector<ExprId> options;
    if (may_end_ && may_be_empty && ends(at, on_least, on_most)) options.push_back(grammar_.empty());
    const char low = on_least ? least_[at] : '0';
    const char high = on_most ? most_[at] : '9';
    const auto then = [&](char first, char last, bool least, bool most) {
      if (first <= last) options.push_back(grammar_.sequence({digits(first, last), from(at + 1, least, most)}));
    };
    if (low == high) {
      then(low, high, on_least, on_most);
    } else {
      if (on_least) then(low, low, true, false);
      then(static_cast<char>(low + (on_least ? 1 : 0)), static_cast<char>(high - (on_most ? 1 : 0)), false, false);
      if (on_most) then(high, high, false, true);
    }
    return grammar_.choice(std::move(options));
  }

  // Whether a text that ends here, after digits equal to those of the bounds it is still on, is within them.
  bool ends(std::size_t at, bool on_least, bool on_most) const {
    const auto zeros = [&](const std::string& text) { return text.find_first_not_of('0', at) == std::string::npos; };
    if (on_least && (!zeros(least_) || least_excluded_)) return false;
    return !(on_most && zeros(most_) && most_excluded_);
  }

 private:
  ExprId digits(char first, char last) {
    return grammar_.chars(CodePointSet({{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)}}));
  }

  Grammar& grammar_;
  std::string least_, most_;
  bool may_end_, least_excluded_, most_excluded_;
};

ExprId naturals(Grammar& grammar, std::uint64_t least, std::uint64_t most) {
  std::vector<ExprId> options;
  const std::string first = std::to_string(least);
  const std::string last = std::to_string(most);
  for (std::size_t length = first.size(); least <= most && length <= last.size(); ++length) {
    std::string low = length == first.size() ? first : "1" + std::string(length - 1, '0');
    std::string high = length == last.size() ? last : std::string(length, '9');
    options.push_back(DigitRange(grammar, std::move(low), std::move(high), false, false, false).from(0, true, true));
  }
  return grammar.choice(std::move(options));
}

constexpr double kBeyondWhole = 0x1p63;

// Whether no whole number of 64 bits is within the bound.
bool unreachable(const Value& value, bool excluded, bool least) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (const auto* exact = value.get_if<std::int64_t>()) return excluded && *exact == (least ? Limits::max() : Limits::min());
  const double real = *value.get_if<double>();
  return least ? real >= kBeyondWhole : real < -kBeyondWhole || (excluded && real == -kBeyondWhole);
}

// Nothing where every whole number is within the bound, which some are.
std::optional<std::int64_t> whole_bound(const Value& value, bool excluded, bool least) {
  std::int64_t whole = 0;
  if (const auto* exact = value.get_if<std::int64_t>()) {
    whole = *exact;
  } else {
    const double real = *value.get_if<double>();
    const double rounded = least ? std::ceil(real) : std::floor(real);
    if (least ? rounded < -kBeyondWhole : rounded >= kBeyondWhole) return std::nullopt;
    whole = static_cast<std::int64_t>(rounded);
    excluded = excluded && rounded == real;
  }
  if (!excluded) return whole;
  return least ? whole + 1 : whole - 1;
}

// A bound without its sign.
struct Decimal {
  bool negative = false;
  std::uint64_t whole = 0;
  std::string fraction;  // without trailing zeros
};

std::optional<Decimal> decimal(const Value& value) {
  std::array<char, 400> buffer{};
  std::to_chars_result end{};
  if (const auto* exact = value.get_if<std::int64_t>()) {
    end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *exact);
  } else {
    end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *value.get_if<double>(), std::chars_format::fixed);
  }
  if (end.ec != std::errc()) return std::nullopt;
  std::string text(buffer.data(), end.ptr);
  Decimal out;
  out.negative = text.front() == '-';
  if (out.negative) text.erase(0, 1);
  const std::size_t point = std::min(text.find('.'), text.size());
  if (point < text.size()) out.fraction = text.substr(point + 1);
  while (!out.fraction.empty() && out.fraction.back() == '0') out.fraction.pop_back();
  if (point + out.fraction.size() > kMaxDigits) return std::nullopt;
  out.whole = std::stoull(text.substr(0, point));
  if (out.whole == 0 && out.fraction.empty()) out.negative = false;
  return out;
}

struct Magnitudes {
  Decimal least, most;
  bool least_excluded = false;
  bool most_excluded = false;
};

// Numbers without a sign, with at most `places` digits after the point.
ExprId magnitudes(Grammar& grammar, const Magnitudes& range, std::size_t places) {
  const auto padded = [&](const std::string& fraction) { return fraction + std::string(places - fraction.size(), '0'); };
  const auto with_fraction = [&](ExprId whole, bool on_least, bool on_most) {
    DigitRange digits(grammar, padded(range.least.fraction), padded(range.most.fraction), true, range.least_excluded, range.most_excluded);
    std::vector<ExprId> options;
    if (digits.ends(0, on_least, on_most)) options.push_back(grammar.empty());
    options.push_back(grammar.sequence({grammar.bytes("."), digits.from(0, on_least, on_most, false)}));
    return grammar.sequence({whole, grammar.choice(std::move(options))});
  };
  const auto exactly = [&](std::uint64_t whole) { return grammar.bytes(std::to_string(whole)); };
  if (range.least.whole > range.most.whole) return grammar.nothing();
  if (range.least.whole == range.most.whole) {
    if (padded(range.least.fraction) > padded(range.most.fraction)) return grammar.nothing();
    return with_fraction(exactly(range.least.whole), true, true);
  }
  std::vector<ExprId> options = {with_fraction(exactly(range.least.whole), true, false),
                                 with_fraction(exactly(range.most.whole), false, true)};
  if (range.least.whole + 1 < range.most.whole)
    options.push_back(with_fraction(naturals(grammar, range.least.whole + 1, range.most.whole - 1), false, false));
  return grammar.choice(std::move(options));
}

}  // namespace

ExprId integers_within(Grammar& grammar, const NumberBounds& bounds) {
  if ((bounds.least && unreachable(*bounds.least, bounds.least_excluded, true)) ||
      (bounds.most && unreachable(*bounds.most, bounds.most_excluded, false)))
    return grammar.nothing();
  const auto least = bounds.least ? whole_bound(*bounds.least, bounds.least_excluded, true) : std::nullopt;
  const auto most = bounds.most ? whole_bound(*bounds.most, bounds.most_excluded, false) : std::nullopt;
  const auto magnitude = [](std::int64_t value) {
    return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  };
  std::vector<ExprId> options;
  if (!most || *most >= 0) {
    const std::uint64_t low = least && *least > 0 ? magnitude(*least) : 0;
    const std::uint64_t usual = low > kUsualMost ? std::uint64_t{std::numeric_limits<std::int64_t>::max()} : kUsualMost;
    options.push_back(naturals(grammar, low, most ? magnitude(*most) : usual));
  }
  if (!least || *least < 0) {
    const std::uint64_t low = most && *most < 0 ? magnitude(*most) : 1;
    const std::uint64_t usual = low > kUsualMost ? std::uint64_t{std::numeric_limits<std::int64_t>::max()} : kUsualMost;
    options.push_back(grammar.sequence({grammar.bytes("-"), naturals(grammar, low, least ? magnitude(*least) : usual)}));
  }
  return grammar.choice(std::move(options));
}

Result<ExprId> numbers_within(Grammar& grammar, const NumberBounds& bounds) {
  const auto least = bounds.least ? decimal(*bounds.least) : std::optional(Decimal{});
  const auto most = bounds.most ? decimal(*bounds.most) : std::optional(Decimal{});
  const auto length = [](const Decimal& bound) { return std::to_string(bound.whole).size(); };
  if (!least || !most) return invalid_argument(fmt::format("bounds of numbers may have {} digits", kMaxDigits));
  const std::size_t needed = std::max({least->fraction.size(), most->fraction.size(), std::size_t{1}});
  const std::size_t whole = std::max(length(*least), length(*most));
  if (needed + whole > kMaxDigits) return invalid_argument(fmt::format("bounds of numbers may have {} digits together", kMaxDigits));
  const std::size_t places = std::max(needed, std::min(kUsualFraction, kMaxDigits - whole));
  // Beyond all numbers with the digits that are left; excluded, so its own fraction does not matter.
  Decimal end;
  end.whole = std::stoull("1" + std::string(kMaxDigits - places, '0'));

  std::vector<ExprId> options;
  if (!bounds.most || !most->negative) {
    Magnitudes range{{}, bounds.most ? *most : end, false, bounds.most ? bounds.most_excluded : true};
    if (bounds.least && !least->negative) {
      range.least = *least;
      range.least_excluded = bounds.least_excluded;
    }
    options.push_back(magnitudes(grammar, range, places));
  }
  if (!bounds.least || least->negative) {
    Magnitudes range{{}, bounds.least ? *least : end, true, bounds.least ? bounds.least_excluded : true};  // no -0
    if (bounds.most && most->negative) {
      range.least = *most;
      range.least_excluded = bounds.most_excluded;
    }
    options.push_back(grammar.sequence({grammar.bytes("-"), magnitudes(grammar, range, places)}));
  }
  return grammar.choice(std::move(options));
}

}  // namespace braid::grammar::json
