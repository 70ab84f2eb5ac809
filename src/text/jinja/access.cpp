// Attributes, subscripts and slices.
#include "text/jinja/native.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

// The method of that name, or missing. Looking up one that would change its value gives undefined, as Jinja's immutable
// sandbox does; append, extend, insert and pop of lists are allowed since published templates use them.
Object find_method(const Object& value, std::string_view name) {
  static constexpr std::array<std::string_view, 6> kChangesDict = {"clear", "fromkeys", "pop", "popitem", "setdefault", "update"};
  const Native* method = nullptr;
  if (value.text() != nullptr) {
    method = find_text_method(name);
  } else if (value.dict() != nullptr) {
    if (std::find(kChangesDict.begin(), kChangesDict.end(), name) != kChangesDict.end()) return Undefined{};
    method = find_dict_method(name);
  } else if (value.sequence() != nullptr && value.sequence()->kind <= Sequence::Kind::kTuple) {
    method = find_list_method(name);
  }
  return method == nullptr ? Object() : make_callable(*method, value);
}

Object find_attribute(Runtime& runtime, const Object& value, std::string_view name) {
  if (auto* function = value.callable()) return function->attribute(runtime, name);
  if (const auto* members = value.name_space()) {
    const Object* member = members->members.find(name);
    return member == nullptr ? Object() : *member;
  }
  const auto* list = value.sequence();
  if (list != nullptr && list->is_group && name == "grouper") return list->items[0];
  if (list != nullptr && list->is_group && name == "list") return list->items[1];
  return find_method(value, name);
}

// Python's slice.indices(): the range of a slice within `length` items.
struct SliceRange {
  std::int64_t start, stop, step;
};

std::int64_t clamp_index(std::int64_t index, std::int64_t length, std::int64_t low, std::int64_t high) {
  if (index < 0) index = index < -length ? low : index + length;
  return std::clamp(index, low, high);
}

SliceRange resolve_slice(Runtime& runtime, std::int64_t length, const Object& start, const Object& stop, const Object& step) {
  const auto given = [](const Object& value) { return !value.is_missing() && !value.is_none(); };
  SliceRange range{0, 0, given(step) ? runtime.to_integer(step, "the step of a slice") : 1};
  if (range.step == 0) {
    runtime.fail("the step of a slice is zero");
    range.step = 1;
  }
  const bool forward = range.step > 0;
  const std::int64_t low = forward ? 0 : -1;
  const std::int64_t high = forward ? length : length - 1;
  range.start = given(start) ? clamp_index(runtime.to_integer(start, "the start of a slice"), length, low, high) : (forward ? low : high);
  range.stop = given(stop) ? clamp_index(runtime.to_integer(stop, "the end of a slice"), length, low, high) : (forward ? high : low);
  return range;
}

// The places a slice takes, in order.
std::vector<std::size_t> places(const SliceRange& range) {
  std::vector<std::size_t> result;
  const auto inside = [&](std::int64_t at) { return range.step > 0 ? at < range.stop : at > range.stop; };
  for (std::int64_t at = range.start; inside(at);) {
    result.push_back(static_cast<std::size_t>(at));
    if (__builtin_add_overflow(at, range.step, &at)) break;
  }
  return result;
}

Object slice_text(Runtime& runtime, const std::string& text, const Object& start, const Object& stop, const Object& step) {
  const auto length = count_code_points(text);
  const auto range = resolve_slice(runtime, static_cast<std::int64_t>(length), start, stop, step);
  if (range.step == 1) {
    const auto begin = offset_of_code_point(text, static_cast<std::size_t>(range.start));
    const auto end = offset_of_code_point(text, static_cast<std::size_t>(std::max(range.start, range.stop)));
    return runtime.text(text.substr(begin, end - begin));
  }
  if (!runtime.step(length)) return Undefined{};
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at < text.size(); next_code_point(text, at)) offsets.push_back(at);
  offsets.push_back(text.size());
  std::string result;
  for (const auto place : places(range)) result.append(text, offsets[place], offsets[place + 1] - offsets[place]);
  return runtime.text(std::move(result));
}

}  // namespace

Object get_own_attribute(Runtime& runtime, const Object& value, std::string_view name) {
  if (value.is_undefined()) return runtime.fail_undefined(value);
  Object attribute = find_attribute(runtime, value, name);
  return attribute.is_missing() ? Object(Undefined{}) : attribute;
}

Object get_attribute(Runtime& runtime, const Object& value, const std::string& name) {
  if (value.is_undefined()) return runtime.fail_undefined(value);
  Object attribute = find_attribute(runtime, value, name);
  if (!attribute.is_missing()) return attribute;
  if (const auto* members = value.dict())
    if (const Object* member = members->find(name)) return *member;
  return Undefined{&name};
}

Object get_item(Runtime& runtime, const Object& value, const Object& key) {
  if (value.is_undefined()) return runtime.fail_undefined(value);
  const auto* name = key.text();
  std::int64_t index = 0;
  if (const auto* members = value.dict()) {
    const Object* member = is_key(key) ? members->find(key) : nullptr;
    if (member != nullptr) return *member;
  } else if (key.to_integer(index)) {
    const bool is_list = value.sequence() != nullptr && value.sequence()->kind <= Sequence::Kind::kRange;
    if (!is_list && value.text() == nullptr) return Undefined{};
    const auto length = static_cast<std::int64_t>(runtime.length(value));
    if (index < 0) index += length;
    if (index < 0 || index >= length) return Undefined{};
    const auto at = static_cast<std::size_t>(index);
    if (is_list) return value.sequence()->items[at];
    std::size_t begin = offset_of_code_point(*value.text(), at);
    std::size_t end = begin;
    next_code_point(*value.text(), end);
    return runtime.text(value.text()->substr(begin, end - begin));
  }
  if (name == nullptr) return Undefined{};
  Object attribute = find_attribute(runtime, value, *name);
  return attribute.is_missing() ? Object(Undefined{}) : attribute;
}

Object get_slice(Runtime& runtime, const Object& value, const Object& start, const Object& stop, const Object& step) {
  if (value.is_undefined()) return runtime.fail_undefined(value);
  if (const auto* text = value.text()) return slice_text(runtime, *text, start, stop, step);
  const auto* list = value.sequence();
  if (list == nullptr || list->kind > Sequence::Kind::kRange)
    return runtime.fail(fmt::format("a value of type {} cannot be sliced", type_name(value)));
  const auto range = resolve_slice(runtime, static_cast<std::int64_t>(list->items.size()), start, stop, step);
  std::vector<Object> items;
  for (const auto place : places(range)) items.push_back(list->items[place]);
  return runtime.sequence(std::move(items), list->kind);
}

Object get_path(Runtime& runtime, const Object& value, const Object& path, const Object& fallback) {
  const bool falls_back = !fallback.is_missing() && !fallback.is_none();
  const auto look_up = [&](const Object& owner, const Object& key) {
    Object item = get_item(runtime, owner, key);
    return item.is_undefined() && falls_back ? fallback : item;
  };
  const auto* text = path.text();
  if (text == nullptr) return look_up(value, path);
  Object current = value;
  for (std::string_view left = *text; !runtime.failed();) {
    const auto dot = std::min(left.find('.'), left.size());
    const auto part = left.substr(0, dot);
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = error == std::errc() && end == part.data() + part.size() && part[0] != '-';
    current = look_up(current, is_index ? Object(index) : Object::from_text(std::string(part)));
    if (dot == left.size()) return current;
    left.remove_prefix(dot + 1);
  }
  return Undefined{};
}

}  // namespace braid::text::jinja
