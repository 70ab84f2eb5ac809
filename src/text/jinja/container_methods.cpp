// Methods of lists and dicts, with Python's names and meaning.
#include "text/jinja/native.h"

#include <algorithm>

namespace braid::text::jinja {
namespace {
namespace container_methods {  // the filters have the same names

Object run_get(Runtime&, Arguments& arguments) {
  const Object* member = is_key(arguments[1]) ? arguments[0].dict()->find(arguments[1]) : nullptr;
  if (member != nullptr) return *member;
  return arguments.given(2) ? arguments[2] : Object(Object::None{});
}

Object run_items(Runtime& runtime, Arguments& arguments) {
  std::vector<Object> pairs;
  for (const auto& [key, value] : arguments[0].dict()->items()) {
    if (runtime.failed()) break;
    pairs.push_back(runtime.sequence({key, value}, Sequence::Kind::kTuple));
  }
  return runtime.sequence(std::move(pairs), Sequence::Kind::kItems);
}

Object run_keys(Runtime& runtime, Arguments& arguments) {
  std::vector<Object> keys;
  for (const auto& item : arguments[0].dict()->items()) keys.push_back(item.first);
  return runtime.sequence(std::move(keys), Sequence::Kind::kKeys);
}

Object run_values(Runtime& runtime, Arguments& arguments) {
  std::vector<Object> values;
  for (const auto& item : arguments[0].dict()->items()) values.push_back(item.second);
  return runtime.sequence(std::move(values), Sequence::Kind::kValues);
}

Object run_copy_dict(Runtime& runtime, Arguments& arguments) {
  if (!runtime.spend(arguments[0].dict()->items().size() * sizeof(Dict::Item))) return Undefined{};
  return runtime.dict(std::make_shared<Dict>(*arguments[0].dict()));
}

Object run_copy_list(Runtime& runtime, Arguments& arguments) {
  return runtime.sequence(arguments[0].sequence()->items, arguments[0].sequence()->kind);
}

Object run_index(Runtime& runtime, Arguments& arguments) {
  const auto& items = arguments[0].sequence()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (runtime.equal(items[i], arguments[1])) return static_cast<std::int64_t>(i);
  return runtime.fail("index: the list does not hold that value");
}

Object run_count(Runtime& runtime, Arguments& arguments) {
  const auto& items = arguments[0].sequence()->items;
  return static_cast<std::int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Object& item) { return runtime.equal(item, arguments[1]); }));
}

// Whether `target` lies in `value`: a list that holds itself could be neither printed nor freed.
bool reaches(Runtime& runtime, const Object& value, const Sequence* target, int level) {
  if (value.sequence() == target) return true;
  if (level > kMaxValueDepth || value.name_space() != nullptr || value.callable() != nullptr || !runtime.step()) return true;
  const auto inside = [&](const Object& item) { return reaches(runtime, item, target, level + 1); };
  if (const auto* list = value.sequence()) return std::any_of(list->items.begin(), list->items.end(), inside);
  if (const auto* members = value.dict())
    return std::any_of(members->items().begin(), members->items().end(), [&](const Dict::Item& item) { return inside(item.second); });
  return false;
}

// The list to be changed, or null with a failure.
Sequence* changeable(Runtime& runtime, const Object& value) {
  auto* list = value.sequence();
  if (list->kind != Sequence::Kind::kList) {
    runtime.fail("a tuple cannot be changed");
    return nullptr;
  }
  runtime.keep(value);
  return list;
}

bool insert(Runtime& runtime, const Object& self, std::size_t at, std::vector<Object> values) {
  auto* list = changeable(runtime, self);
  if (list == nullptr || !runtime.spend(values.size() * sizeof(Object)) || !runtime.step(list->items.size() - at)) return false;
  for (const auto& value : values) {
    if (!reaches(runtime, value, list, 0)) continue;
    runtime.fail("a list cannot take itself, a namespace or a function");
    return false;
  }
  for (const auto& value : values) list->depth = std::max(list->depth, 1 + depth_of(value));
  list->items.insert(list->items.begin() + static_cast<std::ptrdiff_t>(at), values.begin(), values.end());
  return true;
}

Object run_append(Runtime& runtime, Arguments& arguments) {
  insert(runtime, arguments[0], arguments[0].sequence()->items.size(), {arguments[1]});
  return Object::None{};
}

Object run_extend(Runtime& runtime, Arguments& arguments) {
  auto values = runtime.iterate(arguments[1]);
  insert(runtime, arguments[0], arguments[0].sequence()->items.size(), std::move(values));
  return Object::None{};
}

Object run_insert(Runtime& runtime, Arguments& arguments) {
  const auto size = static_cast<std::int64_t>(arguments[0].sequence()->items.size());
  auto at = std::clamp(runtime.to_integer(arguments[1], "the place of insert"), -size, size);
  if (at < 0) at += size;
  insert(runtime, arguments[0], static_cast<std::size_t>(at), {arguments[2]});
  return Object::None{};
}

Object run_pop(Runtime& runtime, Arguments& arguments) {
  auto* list = changeable(runtime, arguments[0]);
  if (list == nullptr) return Undefined{};
  const auto size = static_cast<std::int64_t>(list->items.size());
  auto at = arguments.given(1) ? runtime.to_integer(arguments[1], "the place of pop") : -1;
  if (at < 0) at += size;
  if (at < 0 || at >= size) return runtime.fail("pop: the list has no such place");
  if (!runtime.step(static_cast<std::size_t>(size - at))) return Undefined{};
  const auto place = list->items.begin() + static_cast<std::ptrdiff_t>(at);
  Object value = std::move(*place);
  list->items.erase(place);
  return value;
}

constexpr Native kDictMethods[] = {
    {"copy", "self", run_copy_dict}, {"get", "self key default?", run_get}, {"items", "self", run_items},
    {"keys", "self", run_keys},      {"values", "self", run_values},
};

constexpr Native kListMethods[] = {
    {"append", "self object", run_append},   {"copy", "self", run_copy_list},    {"count", "self value", run_count},
    {"extend", "self iterable", run_extend}, {"index", "self value", run_index}, {"insert", "self index object", run_insert},
    {"pop", "self index?", run_pop},
};

}  // namespace container_methods
}  // namespace

const Native* find_dict_method(std::string_view name) { return find_in(container_methods::kDictMethods, name); }
const Native* find_list_method(std::string_view name) { return find_in(container_methods::kListMethods, name); }

}  // namespace braid::text::jinja
