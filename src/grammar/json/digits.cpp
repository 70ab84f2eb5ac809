#include "grammar/json/digits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>
#include <vector>

namespace braid::grammar::json {
namespace {

// Where a text is: how many digits it has, which bounds it is still equal to, and what is left of it by the modulus.
struct Place {
  std::size_t at = 0;
  bool on_least = false;
  bool on_most = false;
  std::uint32_t rest = 0;
  auto operator<=>(const Place&) const = default;
};

bool only_zeros(const std::string& digits, std::size_t from) { return digits.find_first_not_of('0', from) == std::string::npos; }

// Whether a text that ends here is within the bounds, where those it is on go on with zeros.
bool ends_within(const DigitRange& range, const Place& place) {
  if (place.rest != 0 || (place.at < range.least.size() && !range.may_end)) return false;
  if (place.on_least && (!only_zeros(range.least, place.at) || range.least_excluded)) return false;
  return !(place.on_most && only_zeros(range.most, place.at) && range.most_excluded);
}

}  // namespace

namespace {

std::string text_of(const Value& number) {
  if (const auto* digits = number.get_if<LongInteger>()) return digits->text;
  std::array<char, 1200> buffer{};  // the smallest number has 1074 places
  const auto* exact = number.get_if<std::int64_t>();
  const std::to_chars_result end =
      exact != nullptr ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), *exact)
                       : std::to_chars(buffer.data(), buffer.data() + buffer.size(), *number.get_if<double>(), std::chars_format::fixed);
  return {buffer.data(), end.ptr};
}

}  // namespace

Decimal decimal_of(const Value& number) {
  std::string text = text_of(number);
  Decimal out;
  out.negative = text.front() == '-';
  if (out.negative) text.erase(0, 1);
  const std::size_t point = std::min(text.find('.'), text.size());
  out.whole = text.substr(0, point);
  if (point < text.size()) out.fraction = text.substr(point + 1);
  while (!out.fraction.empty() && out.fraction.back() == '0') out.fraction.pop_back();
  if (out.zero()) out.negative = false;
  return out;
}

std::string next_whole(std::string digits) {
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (*digit != '9') {
      ++*digit;
      return digits;
    }
    *digit = '0';
  }
  return "1" + digits;
}

std::string previous_whole(std::string digits) {
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (*digit != '0') {
      --*digit;
      break;
    }
    *digit = '9';
  }
  return digits.size() > 1 && digits.front() == '0' ? digits.substr(1) : digits;
}

bool less_whole(const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

bool less(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative;
  const Decimal& near = a.negative ? b : a;
  const Decimal& far = a.negative ? a : b;
  return near.whole != far.whole ? less_whole(near.whole, far.whole) : near.fraction < far.fraction;
}

bool DigitRange::holds_empty(bool on_least, bool on_most) const { return ends_within(*this, {0, on_least, on_most, 0}); }

ExprId digits_within(Grammar& grammar, const DigitRange& range, bool on_least, bool on_most) {
  std::map<Place, std::uint32_t> number = {{Place{0, on_least, on_most, 0}, 0}};
  std::vector<Place> places = {number.begin()->first};
  std::map<std::pair<char, bool>, ExprId> digits;
  std::vector<GraphEdge> edges;
  std::vector<std::uint32_t> accepting;
  for (std::uint32_t from = 0; from < places.size(); ++from) {
    const Place place = places[from];
    if (ends_within(range, place) && place.at > 0) accepting.push_back(from);
    if (place.at == range.least.size()) continue;
    for (char digit = place.on_least ? range.least[place.at] : '0'; digit <= (place.on_most ? range.most[place.at] : '9'); ++digit) {
      const Place next = {place.at + 1, place.on_least && digit == range.least[place.at], place.on_most && digit == range.most[place.at],
                          (place.rest * 10 + static_cast<std::uint32_t>(digit - '0')) % range.modulus};
      const auto [to, fresh] = number.try_emplace(next, static_cast<std::uint32_t>(places.size()));
      if (fresh) places.push_back(next);
      const bool point = range.point > 0 && place.at + range.point == range.least.size();
      const auto [label, unknown] = digits.try_emplace({digit, point}, 0);
      if (unknown) label->second = grammar.bytes(point ? std::string(".") + digit : std::string(1, digit));
      edges.push_back({from, to->second, label->second});
    }
  }
  return grammar.graph(std::move(edges), std::move(accepting));
}

}  // namespace braid::grammar::json
