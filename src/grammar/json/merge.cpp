#include "grammar/json/merge.h"

#include "grammar/json/keywords.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <optional>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kMaxBranches = 64;
constexpr std::size_t kMaxComparisons = 1'000'000;  // of the values of two enums

bool is_annotation(std::string_view name) {
  static const std::set<std::string_view> kNames = {
      "title",      "description", "default",   "example",         "examples",         "$schema",       "$id",   "$comment",
      "deprecated", "readOnly",    "writeOnly", "contentEncoding", "contentMediaType", "discriminator", "$defs", "definitions"};
  return kNames.contains(name) || name.starts_with("x-");
}

Value both(const Value& a, const Value& b) { return ValueDict{{"allOf", ValueList{a, b}}}; }

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
  if (name == "required" || name == "allOf") {
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

// An array's items beyond prefixItems and an object's members beyond patternProperties depend on their neighbours.
bool entangled(const ValueDict& a, const ValueDict& b, std::string_view first, std::string_view second) {
  return find(a, first) != nullptr && find(b, second) != nullptr;
}

}  // namespace

bool has_constraints(const ValueDict& schema) {
  return std::any_of(schema.begin(), schema.end(), [](const auto& member) { return !is_annotation(member.first); });
}

Result<Value> merge_schemas(const ValueDict& a, const ValueDict& b, const std::string& path) {
  const auto refuse = [&](std::string_view name) {
    const std::string place = fmt::format("{}.{}", path, name);
    return invalid_argument(fmt::format("{}: what this and the schema it is joined with say cannot be combined", place), place);
  };
  if (entangled(a, b, "prefixItems", "items") || entangled(b, a, "prefixItems", "items")) return refuse("prefixItems");
  for (const char* name : {"properties", "additionalProperties"})
    if (entangled(a, b, "patternProperties", name) || entangled(b, a, "patternProperties", name)) return refuse("patternProperties");

  ValueDict out;
  if (find(a, "properties") != nullptr || find(b, "properties") != nullptr) out.emplace_back("properties", merge_properties(a, b));
  for (const auto& [name, value] : a) {
    if (name == "properties") continue;
    const Value* other = is_annotation(name) ? nullptr : find(b, name);
    if (other == nullptr) {
      out.emplace_back(name, value);
      continue;
    }
    if (name == "const" && !same_value(value, *other)) return Value(false);
    std::optional<Value> merged = name == "const" ? value : conjunction(name, value, *other);
    if (!merged) return refuse(name);
    if ((name == "type" || name == "enum") && *merged == Value(ValueList{})) return Value(false);
    out.emplace_back(name, std::move(*merged));
  }
  for (const auto& [name, value] : b)
    if (name != "properties" && find(a, name) == nullptr) out.emplace_back(name, value);
  if (leaves_no_value(out)) return Value(false);
  return Value(std::move(out));
}

}  // namespace braid::grammar::json
