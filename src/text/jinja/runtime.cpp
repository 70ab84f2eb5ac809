#include "text/jinja/runtime.h"

#include "text/jinja/lexer.h"
#include "text/jinja/object_text.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text::jinja {

Runtime::~Runtime() {
  for (const auto& value : kept_) {
    if (auto* list = value.sequence()) list->items.clear();
    if (auto* members = value.name_space()) members->members = Dict();
  }
}

Object Runtime::fail(std::string_view what) {
  if (!error_) error_ = template_error(line_, what);
  return Undefined{};
}

Object Runtime::fail_undefined(const Object& value) {
  const auto* undefined = std::get_if<Undefined>(&value.storage());
  if (undefined == nullptr || undefined->name == nullptr) return fail("a value that is undefined was used");
  return fail(fmt::format("'{}' is undefined", *undefined->name));
}

bool Runtime::step(std::size_t count) {
  if (count > steps_) {
    fail("the template takes too many steps");
    steps_ = 0;
    return false;
  }
  steps_ -= count;
  return true;
}

bool Runtime::spend(std::size_t bytes) {
  if (bytes > bytes_left()) {
    fail("the template makes values that are too large");
    bytes_ = 0;
    return false;
  }
  bytes_ -= bytes;
  return true;
}

bool Runtime::enter() {
  constexpr int kMaxDepth = 2500;  // calls of the interpreter into itself; each takes some hundred bytes of stack
  if (++depth_ > kMaxDepth) fail("the template calls itself too deeply");
  return depth_ <= kMaxDepth;
}

Object Runtime::text(std::string value) {
  if (!spend(value.size() + 1)) return Undefined{};
  return Object::from_text(std::move(value));
}

Object Runtime::sequence(std::vector<Object> items, Sequence::Kind kind) {
  if (!spend(sizeof(Sequence) + items.size() * sizeof(Object))) return Undefined{};
  auto list = std::make_shared<Sequence>();
  list->kind = kind;
  for (const auto& item : items) list->depth = std::max(list->depth, 1 + depth_of(item));
  if (list->depth > kMaxValueDepth) return fail("lists nest too deeply");
  list->items = std::move(items);
  return list;
}

Object Runtime::dict(std::shared_ptr<Dict> value) {
  if (!spend(sizeof(Dict))) return Undefined{};
  if (value->depth > kMaxValueDepth) return fail("dicts nest too deeply");
  return value;
}

void Runtime::set(Dict& members, Object key, Object value) {
  if (!is_key(key)) {
    fail(fmt::format("a {} cannot be the key of a dict", type_name(key)));
    return;
  }
  if (spend(sizeof(Dict::Item))) members.set(std::move(key), std::move(value));
}

void Runtime::keep(const Object& mutable_value) {
  if (spend(sizeof(Object))) kept_.push_back(mutable_value);
}

std::vector<Object> Runtime::iterate(const Object& value) {
  std::vector<Object> items;
  if (auto* list = value.sequence()) {
    if (!step(list->items.size())) return {};
    if (list->kind == Sequence::Kind::kGenerator) return std::exchange(list->items, {});
    return list->items;
  }
  if (const auto* members = value.dict()) {
    if (!step(members->items().size())) return {};
    items.reserve(members->items().size());
    for (const auto& item : members->items()) items.push_back(item.first);
    return items;
  }
  if (const auto* string = value.text()) {
    for (std::size_t at = 0; at < string->size() && step() && !failed();) {
      const std::size_t begin = at;
      next_code_point(*string, at);
      if (!spend(sizeof(Object) + 2 * sizeof(std::string))) break;
      items.push_back(Object::from_text(string->substr(begin, at - begin)));
    }
    return items;
  }
  if (!value.is_undefined()) fail(fmt::format("a value of type {} cannot be iterated", type_name(value)));
  return items;
}

std::size_t Runtime::length(const Object& value) {
  if (const auto* list = value.sequence(); list != nullptr && list->kind != Sequence::Kind::kGenerator) return list->items.size();
  if (const auto* members = value.dict()) return members->items().size();
  if (const auto* string = value.text()) return count_code_points(*string);
  if (!value.is_undefined()) fail(fmt::format("a value of type {} has no length", type_name(value)));
  return 0;
}

std::string Runtime::to_text(const Object& value) {
  std::string out;
  if (!append_text(out, value, bytes_left())) fail("a value is too large to print");
  spend(out.size());
  return out;
}

bool Runtime::equal(const Object& left, const Object& right) {
  const bool same = step() && Comparison(steps_).equal(left, right);
  if (steps_ == 0) step();  // fails
  return same;
}

int Runtime::order(const Object& left, const Object& right) {
  const int result = step() ? Comparison(steps_).order(left, right) : 2;
  if (result == 2 && (left.is_undefined() || right.is_undefined())) {
    fail_undefined(left.is_undefined() ? left : right);
  } else if (result == 2 && !(left.is_number() && right.is_number())) {
    fail(fmt::format("values of type {} and {} have no order", type_name(left), type_name(right)));
  }
  return result;
}

std::int64_t Runtime::to_integer(const Object& value, std::string_view what) {
  std::int64_t number = 0;
  if (!value.to_integer(number)) fail(fmt::format("{} must be an integer, not {}", what, type_name(value)));
  return number;
}

}  // namespace braid::text::jinja
