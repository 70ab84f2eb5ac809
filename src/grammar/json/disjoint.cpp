#include "grammar/json/keywords.h"
#include "grammar/json/merge.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace braid::grammar::json {
namespace {

// The values a schema is limited to, when it lists them.
std::optional<ValueList> listed_values(const Value& schema) {
  if (const Value* constant = schema.find("const")) return ValueList{*constant};
  const Value* list = schema.find("enum");
  if (list == nullptr || list->get_if<ValueList>() == nullptr) return std::nullopt;
  return *list->get_if<ValueList>();
}

Types possible_types(const Value& schema) {
  const auto* dict = schema.get_if<ValueDict>();
  Types types = types_of(dict != nullptr ? *dict : ValueDict{});
  const auto values = listed_values(schema);
  if (!values) return find(dict != nullptr ? *dict : ValueDict{}, "type") != nullptr ? types : types_of({});
  Types listed;
  for (const Value& value : *values)
    if (has_type(types, value)) listed.insert(type_of_value(value));
  return listed;
}

bool forbids_property(const Value& schema, const std::string& name) {
  const Value* additional = schema.find("additionalProperties");
  const Value* properties = schema.find("properties");
  return additional != nullptr && *additional == Value(false) && schema.find("patternProperties") == nullptr &&
         (properties == nullptr || properties->find(name) == nullptr);
}

std::set<std::string> required_properties(const Value& schema) {
  std::set<std::string> out;
  const Value* required = schema.find("required");
  if (const auto* names = required == nullptr ? nullptr : required->get_if<ValueList>())
    for (const Value& item : *names)
      if (const auto* name = item.get_if<std::string>()) out.insert(*name);
  return out;
}

bool requires_what_is_forbidden(const Value& a, const Value& b) {
  const auto names = required_properties(a);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return forbids_property(b, name); });
}

// Some property that both require has other values in each. Every pair of such properties is compared once: twice at each level would
// be without end for schemas that nest deep.
bool told_apart_by_property(const Value& a, const Value& b) {
  const Value* mine = a.find("properties");
  const Value* theirs = b.find("properties");
  if (mine == nullptr || theirs == nullptr) return false;
  const auto names = required_properties(a);
  const auto others = required_properties(b);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const Value* x = mine->find(name);
    const Value* y = theirs->find(name);
    if (x == nullptr || y == nullptr || x->find("$ref") != nullptr || y->find("$ref") != nullptr) return false;
    return others.contains(name) && provably_disjoint(*x, *y);
  });
}

}  // namespace

bool provably_disjoint(const Value& a, const Value& b) {
  if (a == Value(false) || b == Value(false)) return true;
  const Types mine = possible_types(a);
  const Types theirs = possible_types(b);
  Types shared;
  std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::inserter(shared, shared.end()));
  if (shared.empty()) return true;
  const auto x = listed_values(a);
  const auto y = listed_values(b);
  if (x && y) {
    return std::none_of(x->begin(), x->end(), [&](const Value& value) {
      return std::any_of(y->begin(), y->end(), [&](const Value& other) { return same_value(value, other); });
    });
  }
  return shared == Types{Type::kObject} &&
         (requires_what_is_forbidden(a, b) || requires_what_is_forbidden(b, a) || told_apart_by_property(a, b));
}

}  // namespace braid::grammar::json
