#include "text/jinja/object.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace braid::text::jinja {
namespace {

constexpr std::size_t kIndexedFrom = 12;  // below, a scan is faster than a hash

// Python orders and equates integers and floats exactly; a double holds every integer below 2^53.
int compare_numbers(const Object& left, const Object& right) {
  std::int64_t a = 0;
  std::int64_t b = 0;
  if (left.to_integer(a) && right.to_integer(b)) return a < b ? -1 : static_cast<int>(a > b);
  const double x = left.to_double();
  const double y = right.to_double();
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : static_cast<int>(x > y);
}

// Keys only: equal keys have equal hashes, also 1, 1.0 and true.
std::size_t hash(const Object& key) {
  if (const auto* string = key.text()) return std::hash<std::string_view>{}(*string);
  if (key.is_number()) return std::hash<double>{}(key.to_double());
  return key.storage().index();
}

bool equal_keys(const Object& left, const Object& right) {
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.storage().index() != right.storage().index()) return false;
  return left.text() == nullptr || *left.text() == *right.text();
}

}  // namespace

Object Callable::attribute(Runtime&, std::string_view) { return {}; }

bool Object::to_integer(std::int64_t& value) const {
  if (const auto* number = integer()) {
    value = *number;
    return true;
  }
  if (const auto* flag = std::get_if<bool>(&storage_)) {
    value = *flag ? 1 : 0;
    return true;
  }
  return false;
}

double Object::to_double() const {
  if (const auto* number = std::get_if<double>(&storage_)) return *number;
  std::int64_t number = 0;
  to_integer(number);
  return static_cast<double>(number);
}

bool Object::truth() const {
  if (is_number()) return to_double() != 0.0;
  if (const auto* string = text()) return !string->empty();
  if (const auto* list = sequence()) return list->kind == Sequence::Kind::kGenerator || !list->items.empty();
  if (const auto* members = dict()) return !members->items().empty();
  return name_space() != nullptr || callable() != nullptr;
}

const Object* Dict::find(const Object& key) const {
  if (const auto* name = key.text()) return find(std::string_view(*name));
  if (index_.empty()) {
    for (const auto& [name, value] : items_)
      if (equal_keys(name, key)) return &value;
    return nullptr;
  }
  const auto [first, last] = index_.equal_range(hash(key));
  for (auto it = first; it != last; ++it)
    if (equal_keys(items_[it->second].first, key)) return &items_[it->second].second;
  return nullptr;
}

const Object* Dict::find(std::string_view key) const {
  const auto matches = [&](const Item& item) {
    const auto* name = item.first.text();
    return name != nullptr && *name == key;
  };
  if (index_.empty()) {
    for (const auto& item : items_)
      if (matches(item)) return &item.second;
    return nullptr;
  }
  const auto [first, last] = index_.equal_range(std::hash<std::string_view>{}(key));
  for (auto it = first; it != last; ++it)
    if (matches(items_[it->second])) return &items_[it->second].second;
  return nullptr;
}

void Dict::set(Object key, Object value) {
  depth = std::max(depth, 1 + std::max(depth_of(key), depth_of(value)));
  if (const Object* present = find(key)) {
    *const_cast<Object*>(present) = std::move(value);
    return;
  }
  items_.emplace_back(std::move(key), std::move(value));
  if (items_.size() == kIndexedFrom) {
    for (std::size_t i = 0; i < items_.size(); ++i) index_.emplace(hash(items_[i].first), i);
  } else if (items_.size() > kIndexedFrom) {
    index_.emplace(hash(items_.back().first), items_.size() - 1);
  }
}

bool Comparison::equal_sequences(const Sequence& left, const Sequence& right) {
  if (&left == &right) return true;
  if (left.kind != right.kind || left.kind == Sequence::Kind::kGenerator || left.items.size() != right.items.size()) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i)
    if (!equal(left.items[i], right.items[i])) return false;
  return true;
}

bool Comparison::equal_dicts(const Dict& left, const Dict& right) {
  if (left.items().size() != right.items().size()) return false;
  for (const auto& [key, value] : left.items()) {
    const Object* other = right.find(key);
    if (other == nullptr || !equal(value, *other)) return false;
  }
  return true;
}

bool Comparison::equal(const Object& left, const Object& right) {
  if (steps_ == 0 || level_ > 2 * kMaxValueDepth) return false;
  --steps_;
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.storage().index() != right.storage().index()) return false;
  if (const auto* string = left.text()) return *string == *right.text();
  if (left.name_space() != nullptr) return left.name_space() == right.name_space();
  if (left.callable() != nullptr) return left.callable() == right.callable();
  ++level_;
  bool same = true;  // two undefined values, or none twice
  if (left.dict() != nullptr) same = equal_dicts(*left.dict(), *right.dict());
  if (left.sequence() != nullptr) same = equal_sequences(*left.sequence(), *right.sequence());
  --level_;
  return same;
}

int Comparison::order(const Object& left, const Object& right) {
  if (left.is_number() && right.is_number()) return compare_numbers(left, right);
  const auto* string = left.text();
  const auto* other_string = right.text();
  // Bytes of UTF-8 sort as code points do.
  if (string != nullptr && other_string != nullptr) {
    const int result = string->compare(*other_string);
    return result < 0 ? -1 : static_cast<int>(result > 0);
  }
  const auto* list = left.sequence();
  const auto* other = right.sequence();
  const bool ordered = list != nullptr && other != nullptr && list->kind == other->kind && list->kind <= Sequence::Kind::kTuple;
  if (!ordered || level_ > 2 * kMaxValueDepth) return 2;
  const std::size_t shared = std::min(list->items.size(), other->items.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (equal(list->items[i], other->items[i])) continue;
    ++level_;
    const int result = order(list->items[i], other->items[i]);
    --level_;
    return result;
  }
  if (list->items.size() == other->items.size()) return 0;
  return list->items.size() < other->items.size() ? -1 : 1;
}

bool is_key(const Object& value) {
  return value.dict() == nullptr && value.sequence() == nullptr && value.name_space() == nullptr && value.callable() == nullptr;
}

int depth_of(const Object& value) {
  if (const auto* list = value.sequence()) return list->depth;
  if (const auto* members = value.dict()) return members->depth;
  if (const auto* function = value.callable()) return function->depth();
  return 0;
}

std::string_view type_name(const Object& value) {
  if (value.is_undefined()) return "undefined";
  if (value.is_none()) return "none";
  if (value.is_bool()) return "bool";
  if (value.is_float()) return "float";
  if (value.is_number()) return "int";
  if (value.text() != nullptr) return "string";
  if (value.dict() != nullptr) return "dict";
  if (value.name_space() != nullptr) return "namespace";
  if (value.callable() != nullptr) return "function";
  const auto* list = value.sequence();
  if (list == nullptr) return "missing";
  switch (list->kind) {
    case Sequence::Kind::kList:
      return "list";
    case Sequence::Kind::kTuple:
      return "tuple";
    case Sequence::Kind::kRange:
      return "range";
    case Sequence::Kind::kKeys:
      return "dict_keys";
    case Sequence::Kind::kValues:
      return "dict_values";
    case Sequence::Kind::kItems:
      return "dict_items";
    case Sequence::Kind::kGenerator:
      return "generator";
  }
  return "sequence";
}

}  // namespace braid::text::jinja
