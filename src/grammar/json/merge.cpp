#include "grammar/json/merge.h"

#include "grammar/json/keywords.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <optional>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kMaxBranches = 64;
constexpr std::size_t kMaxComparisons = 1'000'000;  // of the values of two enums

// One more of the parts of `a` where that is such a join already: pairs of pairs would be copied whole with every further one.
Value both(const Value& a, const Value& b) {
  constexpr std::size_t kMostInOne = 128;
  const auto* dict = a.get_if<ValueDict>();
  const auto* parts =
      dict != nullptr && dict->size() == 1 && dict->front().first == "allOf" ? dict->front().second.get_if<ValueList>() : nullptr;
  if (parts == nullptr || parts->empty() || parts->size() >= kMostInOne) return ValueDict{{"allOf", ValueList{a, b}}};
  ValueList all = *parts;
  all.push_back(b);
  return ValueDict{{"allOf", std::move(all)}};
}

ValueList list_of(const Value& value) {
  const auto* list = value.get_if<ValueList>();
  return list != nullptr ? *list : ValueList{value};
}

Value common_types(const Value& a, const Value& b) {
  const auto has = [](const ValueList& list, const char* name) { return std::find(list.begin(), list.end(), Value(name)) != list.end(); };
  const ValueList x = list_of(a);
  const ValueList y = list_of(b);
  ValueList out;
  for (const Value& name : x)
    if (std::find(y.begin(), y.end(), name) != y.end() || (name == Value("integer") && has(y, "number"))) out.push_back(name);
  if (has(y, "integer") && has(x, "number") && !has(out, "integer")) out.emplace_back("integer");
  return out;
}

Value common_values(const Value& a, const Value& b) {
  ValueList out;
  const ValueList others = list_of(b);
  for (const Value& value : list_of(a)) {
    if (std::any_of(others.begin(), others.end(), [&](const Value& other) { return same_value(value, other); })) out.push_back(value);
  }
  return out;
}

// Of whole numbers.
std::optional<Value> common_multiple(const Value& a, const Value& b) {
  const auto* x = a.get_if<std::int64_t>();
  const auto* y = b.get_if<std::int64_t>();
  constexpr std::int64_t kMost = 1'000'000;
  if (x == nullptr || y == nullptr || *x <= 0 || *y <= 0 || *x > kMost || *y > kMost) return std::nullopt;
  return Value(std::lcm(*x, *y));
}

// The two values of one keyword as one; nothing when that cannot be written.
std::optional<Value> conjunction(std::string_view name, const Value& a, const Value& b) {
  if (a == b) return a;
  if (name == "type") return common_types(a, b);
  if (name == "enum") {
    if (list_of(a).size() * list_of(b).size() > kMaxComparisons) return std::nullopt;
    return common_values(a, b);
  }
  if (name == "minimum" || name == "exclusiveMinimum" || name.starts_with("min")) return less(a, b) ? b : a;
  if (name == "maximum" || name == "exclusiveMaximum" || name.starts_with("max")) return less(b, a) ? b : a;
  if (name == "uniqueItems") return true;
  if (name == "items" || name == "propertyNames" || name == "additionalProperties") return both(a, b);
  if (name == "unevaluatedProperties" || name == "unevaluatedItems") return both(a, b);
  if (name == "format") return a;  // beside another it is an annotation
  if (name == "not") return ValueDict{{"anyOf", ValueList{a, b}}};
  if (name == "multipleOf") return common_multiple(a, b);
  if (name == "required" || name == "allOf" || name == "pattern") {
    ValueList out = list_of(a);
    for (const Value& item : list_of(b))
      if (std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
    return out;
  }
  if (name == "anyOf") {
    ValueList out;
    const ValueList mine = list_of(a);
    const ValueList others = list_of(b);
    if (mine.size() * others.size() > kMaxBranches) return std::nullopt;
    for (const Value& x : mine)
      for (const Value& y : others) out.push_back(both(x, y));
    return out;
  }
  return std::nullopt;
}

const ValueDict kNoProperties;

const ValueDict& properties_of(const ValueDict& schema) {
  const Value* properties = find(schema, "properties");
  return properties == nullptr ? kNoProperties : *properties->get_if<ValueDict>();
}

// A property of one schema is an additional one to the other when that does not name it.
Value merge_properties(const ValueDict& a, const ValueDict& b) {
  ValueDict out;
  const auto add = [&](const ValueDict& from, const ValueDict& other, bool shared_too) {
    for (const auto& [name, value] : properties_of(from)) {
      const Value* twin = find(properties_of(other), name);
      if (twin != nullptr && shared_too) out.emplace_back(name, both(value, *twin));
      if (twin != nullptr) continue;
      const Value* additional = find(other, "additionalProperties");
      out.emplace_back(name, additional == nullptr ? value : both(value, *additional));
    }
  };
  add(a, b, true);
  add(b, a, false);
  return out;
}

// Whether the two schemas left no value of an enum or const: as with types that have nothing in common, nothing satisfies both, which in
// a branch is no mistake.
bool leaves_no_value(const ValueDict& schema) {
  const Value* constant = find(schema, "const");
  const Value* list = find(schema, "enum");
  if (constant == nullptr && list == nullptr) return false;
  const ValueList values = list == nullptr ? ValueList{*constant} : list_of(*list);
  const bool typed = find(schema, "type") != nullptr;
  return std::none_of(values.begin(), values.end(), [&, types = types_of(schema)](const Value& value) {
    return (!typed || has_type(types, value)) && (constant == nullptr || same_value(*constant, value));
  });
}

// The schemas of an array's first items, and of the others.
void merge_items(const ValueDict& a, const ValueDict& b, ValueDict& out) {
  const auto prefix = [](const ValueDict& schema) {
    const Value* list = find(schema, "prefixItems");
    return list == nullptr ? ValueList{} : *list->get_if<ValueList>();
  };
  const ValueList first = prefix(a);
  const ValueList second = prefix(b);
  const Value* rest_of_a = find(a, "items");
  const Value* rest_of_b = find(b, "items");
  const auto at = [](const ValueList& list, std::size_t i, const Value* rest) { return i < list.size() ? &list[i] : rest; };
  const auto joined = [](const Value* x, const Value* y) { return x == nullptr ? *y : y == nullptr ? *x : both(*x, *y); };
  ValueList merged;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i)
    merged.push_back(joined(at(first, i, rest_of_a), at(second, i, rest_of_b)));
  if (!merged.empty()) out.emplace_back("prefixItems", std::move(merged));
  if (rest_of_a != nullptr || rest_of_b != nullptr) out.emplace_back("items", joined(rest_of_a, rest_of_b));
}

// An object's members beyond patternProperties depend on their neighbours.
bool entangled(const ValueDict& a, const ValueDict& b) {
  const auto one_way = [](const ValueDict& x, const ValueDict& y) {
    return find(x, "patternProperties") != nullptr && (find(y, "properties") != nullptr || find(y, "additionalProperties") != nullptr);
  };
  return one_way(a, b) || one_way(b, a);
}

}  // namespace

bool has_constraints(const ValueDict& schema) {
  return std::any_of(schema.begin(), schema.end(), [](const auto& member) { return restricts(member.first); });
}

Result<Value> merge_schemas(const ValueDict& a, const ValueDict& b, const std::string& path, Leniency& leniency) {
  const auto leave_out = [&](std::string_view name) {
    return leniency.leave_out(fmt::format("{}.{}", path, name), "what this and the schema it is joined with say cannot be combined");
  };
  const bool without_patterns = entangled(a, b);
  if (without_patterns)
    if (auto error = leave_out("patternProperties")) return *error;

  ValueDict out;
  if (find(a, "properties") != nullptr || find(b, "properties") != nullptr) out.emplace_back("properties", merge_properties(a, b));
  merge_items(a, b, out);
  const auto is_merged = [&](std::string_view name) {
    return name == "properties" || name == "items" || name == "prefixItems" || (name == "patternProperties" && without_patterns);
  };
  for (const auto& [name, value] : a) {
    if (is_merged(name)) continue;
    const Value* other = restricts(name) ? find(b, name) : nullptr;
    if (other == nullptr) {
      out.emplace_back(name, value);
      continue;
    }
    if (name == "const" && !same_value(value, *other)) return Value(false);
    std::optional<Value> merged = name == "const" ? value : conjunction(name, value, *other);
    if (!merged) {
      if (auto error = leave_out(name)) return *error;
      merged = value;
    }
    if ((name == "type" || name == "enum") && *merged == Value(ValueList{})) return Value(false);
    out.emplace_back(name, std::move(*merged));
  }
  for (const auto& [name, value] : b)
    if (!is_merged(name) && find(a, name) == nullptr) out.emplace_back(name, value);
  if (leaves_no_value(out)) return Value(false);
  return Value(std::move(out));
}

}  // namespace braid::grammar::json
