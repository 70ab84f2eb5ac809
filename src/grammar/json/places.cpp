#include "grammar/json/places.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kMostPlaceSteps = 4000;  // of one search
constexpr std::size_t kMostPlaceDepth = 256;   // of places within places, references followed

constexpr std::array<std::string_view, 3> kJoiningKeywords = {"allOf", "anyOf", "oneOf"};

// What keywords of other drafts are called in this one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOlderNames = {
    {{"prefixItems", "items"}, {"items", "additionalItems"}}};

// Of "[12]…" what follows, with the number; nullopt: it begins otherwise.
std::optional<std::pair<std::size_t, std::string_view>> take_index(std::string_view rest) {
  std::size_t index = 0;
  if (!rest.starts_with('[')) return std::nullopt;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), index);
  const auto length = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || length >= rest.size() || *end != ']') return std::nullopt;
  return std::pair(index, rest.substr(length + 1));
}

// Of ".name…" what follows; nullopt: it begins otherwise.
std::optional<std::string_view> take_name(std::string_view rest, std::string_view name) {
  if (!rest.starts_with('.') || !rest.substr(1).starts_with(name)) return std::nullopt;
  rest.remove_prefix(1 + name.size());
  if (!rest.empty() && rest.front() != '.' && rest.front() != '[') return std::nullopt;
  return rest;
}

}  // namespace

// One search, which remembers how far it has come.
class Places::Way {
 public:
  Way(const References& references, std::size_t steps) : references_(references), steps_left_(steps) {}

  // Whether `rest` leads on from `value`, which stands at `place`.
  bool leads_on(const Value& value, const std::string& place, std::string_view rest) {
    if (rest.size() < rest_) {
      rest_ = rest.size();
      nearest_ = place;
    }
    if (rest.empty()) return true;
    if (steps_left_ == 0 || depth_ == kMostPlaceDepth) return false;
    --steps_left_;
    ++depth_;
    bool leads = false;
    if (const auto* list = value.get_if<ValueList>()) leads = by_index(*list, place, rest);
    if (const auto* dict = value.get_if<ValueDict>())
      leads = by_name(*dict, place, rest) || past_joining(value, place, rest) || through_parts(*dict, place, rest);
    --depth_;
    return leads;
  }

  const std::string& nearest() const { return nearest_; }
  std::size_t steps_left() const { return steps_left_; }

 private:
  bool by_index(const ValueList& list, const std::string& place, std::string_view rest) {
    const auto taken = take_index(rest);
    return taken && taken->first < list.size() && leads_on(list[taken->first], fmt::format("{}[{}]", place, taken->first), taken->second);
  }

  bool by_name(const ValueDict& dict, const std::string& place, std::string_view rest) {
    for (const auto& [name, item] : dict)
      if (const auto after = take_name(rest, name); after && leads_on(item, fmt::format("{}.{}", place, name), *after)) return true;
    for (const auto& [name, older] : kOlderNames) {
      const auto after = take_name(rest, name);
      const auto member = std::ranges::find(dict, older, [](const auto& named) { return std::string_view(named.first); });
      if (after && member != dict.end() && leads_on(member->second, fmt::format("{}.{}", place, older), *after)) return true;
    }
    return false;
  }

  // As if the next step were not there.
  bool past_joining(const Value& value, const std::string& place, std::string_view rest) {
    return std::ranges::any_of(kJoiningKeywords, [&](std::string_view keyword) {
      const auto after = take_name(rest, keyword);
      const auto taken = after ? take_index(*after) : std::nullopt;
      return taken && leads_on(value, place, taken->second);
    });
  }

  // As if the next step were in one of the parts of which the schema is joined.
  bool through_parts(const ValueDict& dict, const std::string& place, std::string_view rest) {
    for (const auto& [name, value] : dict) {
      const auto* parts = value.get_if<ValueList>();
      if (parts != nullptr && std::ranges::count(kJoiningKeywords, std::string_view(name)) > 0)
        for (std::size_t i = 0; i < parts->size(); ++i)
          if (leads_on((*parts)[i], fmt::format("{}.{}[{}]", place, name, i), rest)) return true;
      const auto* reference = name == "$ref" ? value.get_if<std::string>() : nullptr;
      const auto target = reference != nullptr ? references_.find(*reference) : std::nullopt;
      if (target && leads_on(*target->schema, target->place, rest)) return true;
    }
    return false;
  }

  const References& references_;
  std::size_t steps_left_;
  std::size_t depth_ = 0;
  std::size_t rest_ = ~std::size_t{0};  // bytes that were left from the nearest place on
  std::string nearest_;
};

std::string Places::written(const std::string& place) {
  if (!place.starts_with(path_)) return place;
  const std::size_t granted = std::min(steps_left_, kMostPlaceSteps);
  Way way(references_, granted);
  way.leads_on(root_, path_, std::string_view(place).substr(path_.size()));
  steps_left_ -= granted - way.steps_left();
  return way.nearest();
}

}  // namespace braid::grammar::json
