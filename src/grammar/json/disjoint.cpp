#include <grammar/json/keywords.h>
#include <grammar/json/merge.h>

#include <algorithm>
#include <optional>

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

bool requires_property(const Value& schema, const std::string& name) {
  const Value* required = schema.find("required");
  const auto* names = required == nullptr ? nullptr : required->get_if<ValueList>();
  return names != nullptr && std::find(names->begin(), names->end(), Value(name)) != names->end();
}

bool forbids_property(const Value& schema, const std::string& name) {
  const Value* additional = schema.find("additionalProperties");
  const Value* properties = schema.find("properties");
  return additional != nullptr && *additional == Value(false) && schema.find("patternProperties") == nullptr &&
         (properties == nullptr || properties->find(name) == nullptr);
}

// Some property that `a` requires cannot be in an object of `b`, or has other values there.
bool told_apart_by_property(const Value& a, const Value& b) {
  const Value* required = a.find("required");
  const auto* names = required == nullptr ? nullptr : required->get_if<ValueList>();
  if (names == nullptr) return false;
  return std::any_of(names->begin(), names->end(), [&](const Value& item) {
    const auto* name = item.get_if<std::string>();
    if (name == nullptr) return false;
    if (forbids_property(b, *name)) return true;
    const Value* mine = a.find("properties");
    const Value* theirs = b.find("properties");
    mine = mine == nullptr ? nullptr : mine->find(*name);
    theirs = theirs == nullptr ? nullptr : theirs->find(*name);
    if (mine == nullptr || theirs == nullptr || mine->find("$ref") != nullptr || theirs->find("$ref") != nullptr) return false;
    return requires_property(b, *name) && provably_disjoint(*mine, *theirs);
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
  return shared == Types{Type::kObject} && (told_apart_by_property(a, b) || told_apart_by_property(b, a));
}

}  // namespace braid::grammar::json
