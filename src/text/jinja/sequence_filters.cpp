// Filters about lists and dicts as wholes: order, joining, sums.
#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

using SequenceKind = Sequence::Kind;

bool flag(const Arguments& arguments, std::size_t index) { return arguments.given(index) && arguments[index].truth(); }

// What an item is sorted or compared by: an attribute if one is named, text without case unless asked otherwise.
Object sort_key(Runtime& runtime, const Object& item, const Object& attribute, bool case_sensitive, const Object& fallback = {}) {
  Object key = attribute.is_missing() || attribute.is_none() ? item : get_path(runtime, item, attribute, fallback);
  if (case_sensitive || key.text() == nullptr) return key;
  return runtime.text(to_lower(*key.text()));
}

struct Keyed {
  Object key;
  Object item;
};

std::vector<Keyed> with_keys(Runtime& runtime, std::vector<Object> items, const Object& attribute, bool case_sensitive,
                             const Object& fallback = {}) {
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (auto& item : items) {
    Object key = sort_key(runtime, item, attribute, case_sensitive, fallback);
    keyed.push_back({std::move(key), std::move(item)});
  }
  return keyed;
}

void sort_by_key(Runtime& runtime, std::vector<Keyed>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return !runtime.failed() && (reverse ? runtime.order(b.key, a.key) : runtime.order(a.key, b.key)) == -1;
  });
}

std::vector<Object> sorted_items(Runtime& runtime, std::vector<Keyed> keyed, bool reverse) {
  sort_by_key(runtime, keyed, reverse);
  std::vector<Object> items;
  items.reserve(keyed.size());
  for (auto& entry : keyed) items.push_back(std::move(entry.item));
  return items;
}

// By a list of attributes, "age,name" of which each decides between items that are equal in those before.
Object sort_keys(Runtime& runtime, const Object& item, const std::string& attributes, bool case_sensitive) {
  std::vector<Object> keys;
  for (const auto attribute : split_by(attributes, ",", -1))
    keys.push_back(sort_key(runtime, item, Object::from_text(std::string(attribute)), case_sensitive));
  return runtime.sequence(std::move(keys));
}

Object run_sort(Runtime& runtime, Arguments& arguments) {
  const auto* attributes = arguments[3].text();
  if (attributes == nullptr) {
    auto keyed = with_keys(runtime, runtime.iterate(arguments[0]), arguments[3], flag(arguments, 2));
    return runtime.sequence(sorted_items(runtime, std::move(keyed), flag(arguments, 1)));
  }
  std::vector<Keyed> keyed;
  for (Object& item : runtime.iterate(arguments[0])) {
    Object keys = sort_keys(runtime, item, *attributes, flag(arguments, 2));
    keyed.push_back({std::move(keys), std::move(item)});
  }
  return runtime.sequence(sorted_items(runtime, std::move(keyed), flag(arguments, 1)));
}

Object run_dictsort(Runtime& runtime, Arguments& arguments) {
  const auto* members = arguments[0].dict();
  if (members == nullptr) return arguments[0].is_undefined() ? runtime.fail_undefined(arguments[0]) : runtime.fail("dictsort needs a dict");
  const std::string by = arguments.given(2) ? runtime.to_text(arguments[2]) : "key";
  if (by != "key" && by != "value") return runtime.fail("dictsort sorts by key or by value");
  std::vector<Object> pairs;
  for (const auto& [key, value] : members->items()) pairs.push_back(runtime.sequence({key, value}, SequenceKind::kTuple));
  auto keyed = with_keys(runtime, std::move(pairs), Object(std::int64_t{by == "key" ? 0 : 1}), flag(arguments, 1));
  return runtime.sequence(sorted_items(runtime, std::move(keyed), flag(arguments, 3)));
}

// Each group is a tuple of what its items have in common, as the first of them has it, and the items.
Object run_groupby(Runtime& runtime, Arguments& arguments) {
  const Object& fallback = arguments[2];
  auto keyed = with_keys(runtime, runtime.iterate(arguments[0]), arguments[1], flag(arguments, 3), fallback);
  sort_by_key(runtime, keyed, false);
  std::vector<Object> groups;
  for (auto first = keyed.begin(); first != keyed.end() && !runtime.failed();) {
    const Object key = first->key;
    Object grouper = sort_key(runtime, first->item, arguments[1], true, fallback);
    std::vector<Object> items;
    do {
      items.push_back(std::move(first->item));
    } while (++first != keyed.end() && runtime.equal(first->key, key));
    groups.push_back(runtime.sequence({std::move(grouper), runtime.sequence(std::move(items))}, SequenceKind::kTuple));
    if (auto* group = groups.back().sequence()) group->is_group = true;
  }
  return runtime.sequence(std::move(groups));
}

Object run_unique(Runtime& runtime, Arguments& arguments) {
  std::vector<Object> keys;
  std::vector<Object> items;
  for (auto& [key, item] : with_keys(runtime, runtime.iterate(arguments[0]), arguments[2], flag(arguments, 1))) {
    const auto same = [&runtime, &wanted = key](const Object& other) { return runtime.equal(other, wanted); };
    if (std::any_of(keys.begin(), keys.end(), same)) continue;
    keys.push_back(key);
    items.push_back(item);
  }
  return runtime.sequence(std::move(items), SequenceKind::kGenerator);
}

Object extreme(Runtime& runtime, const Arguments& arguments, int wanted) {
  auto keyed = with_keys(runtime, runtime.iterate(arguments[0]), arguments[2], flag(arguments, 1));
  if (keyed.empty()) return Undefined{};
  std::size_t best = 0;
  for (std::size_t i = 1; i < keyed.size(); ++i)
    if (runtime.order(keyed[i].key, keyed[best].key) == wanted) best = i;
  return keyed[best].item;
}
Object run_min(Runtime& runtime, Arguments& arguments) { return extreme(runtime, arguments, -1); }
Object run_max(Runtime& runtime, Arguments& arguments) { return extreme(runtime, arguments, 1); }

Object run_sum(Runtime& runtime, Arguments& arguments) {
  Object total = arguments.given(2) ? arguments[2] : Object(std::int64_t{0});
  for (const auto& item : runtime.iterate(arguments[0])) {
    const bool by_attribute = arguments.given(1) && !arguments[1].is_none();
    total = apply_binary(runtime, Operator::kAdd, total, by_attribute ? get_path(runtime, item, arguments[1]) : item);
    if (runtime.failed()) break;
  }
  return total;
}

Object run_join(Runtime& runtime, Arguments& arguments) {
  const std::string separator = arguments.given(1) ? runtime.to_text(arguments[1]) : "";
  const bool by_attribute = arguments.given(2) && !arguments[2].is_none();
  std::string out;
  bool first = true;
  for (const auto& item : runtime.iterate(arguments[0])) {
    if (!first) out += separator;
    first = false;
    out += runtime.to_text(by_attribute ? get_path(runtime, item, arguments[2]) : item);
    if (runtime.failed() || out.size() > runtime.bytes_left()) return runtime.fail("a joined string is too large");
  }
  return runtime.text(std::move(out));
}

Object run_first(Runtime& runtime, Arguments& arguments) {
  const auto items = runtime.iterate(arguments[0]);
  return items.empty() ? Object(Undefined{}) : items.front();
}
Object run_last(Runtime& runtime, Arguments& arguments) {
  const auto items = runtime.iterate(arguments[0]);
  return items.empty() ? Object(Undefined{}) : items.back();
}
Object run_list(Runtime& runtime, Arguments& arguments) { return runtime.sequence(runtime.iterate(arguments[0])); }

// What Python can walk backwards comes lazily, a generator's items as a list.
Object run_reverse(Runtime& runtime, Arguments& arguments) {
  const auto* list = arguments[0].sequence();
  const bool is_generator = list != nullptr && list->kind == SequenceKind::kGenerator;
  auto items = runtime.iterate(arguments[0]);
  std::reverse(items.begin(), items.end());
  if (arguments[0].text() == nullptr)
    return runtime.sequence(std::move(items), is_generator ? SequenceKind::kList : SequenceKind::kGenerator);
  std::string out;
  for (const auto& item : items) out += *item.text();
  return runtime.text(std::move(out));
}

Object run_items(Runtime& runtime, Arguments& arguments) {
  if (arguments[0].is_undefined()) return runtime.sequence({}, SequenceKind::kGenerator);
  const auto* members = arguments[0].dict();
  if (members == nullptr) return runtime.fail(fmt::format("items needs a dict, not {}", type_name(arguments[0])));
  std::vector<Object> pairs;
  for (const auto& [key, value] : members->items()) {
    if (runtime.failed()) break;
    pairs.push_back(runtime.sequence({key, value}, SequenceKind::kTuple));
  }
  return runtime.sequence(std::move(pairs), SequenceKind::kGenerator);
}

// Groups of `linecount` items; the last one is filled up when fill_with is given.
Object run_batch(Runtime& runtime, Arguments& arguments) {
  const auto count = runtime.to_integer(arguments[1], "the size of batch");
  if (count < 1 || count > 100'000) return runtime.fail("the size of batch is out of range");
  std::vector<Object> batches;
  std::vector<Object> current;
  for (auto& item : runtime.iterate(arguments[0])) {
    if (static_cast<std::int64_t>(current.size()) == count) batches.push_back(runtime.sequence(std::exchange(current, {})));
    current.push_back(std::move(item));
  }
  const bool fills = arguments.given(2) && !arguments[2].is_none();
  if (fills && !current.empty()) current.resize(static_cast<std::size_t>(count), arguments[2]);
  if (!current.empty()) batches.push_back(runtime.sequence(std::move(current)));
  return runtime.sequence(std::move(batches), SequenceKind::kGenerator);
}

// `slices` lists of nearly equal length; the shorter ones are filled up when fill_with is given.
Object run_slice(Runtime& runtime, Arguments& arguments) {
  const auto slices = runtime.to_integer(arguments[1], "the count of slice");
  if (slices < 1 || slices > 100'000) return runtime.fail("the count of slice is out of range");
  const auto items = runtime.iterate(arguments[0]);
  const auto count = static_cast<std::size_t>(slices);
  const std::size_t share = items.size() / count;
  const std::size_t longer = items.size() % count;
  const bool fills = arguments.given(2) && !arguments[2].is_none();
  std::vector<Object> result;
  auto at = items.begin();
  for (std::size_t i = 0; i < count && !runtime.failed(); ++i) {
    const auto end = at + static_cast<std::ptrdiff_t>(share + (i < longer ? 1 : 0));
    std::vector<Object> part(at, end);
    if (fills && i >= longer) part.push_back(arguments[2]);
    result.push_back(runtime.sequence(std::move(part)));
    at = end;
  }
  return runtime.sequence(std::move(result), SequenceKind::kGenerator);
}

constexpr Native kSequenceFilters[] = {
    {"batch", "value linecount fill_with?", run_batch},
    {"dictsort", "value case_sensitive? by? reverse?", run_dictsort},
    {"first", "seq", run_first},
    {"groupby", "value attribute default? case_sensitive?", run_groupby},
    {"items", "value", run_items},
    {"join", "value d? attribute?", run_join},
    {"last", "seq", run_last},
    {"list", "value", run_list},
    {"max", "value case_sensitive? attribute?", run_max},
    {"min", "value case_sensitive? attribute?", run_min},
    {"reverse", "value", run_reverse},
    {"slice", "value slices fill_with?", run_slice},
    {"sort", "value reverse? case_sensitive? attribute?", run_sort},
    {"sum", "value attribute? start?", run_sum},
    {"unique", "value case_sensitive? attribute?", run_unique},
};

}  // namespace

const Native* find_sequence_filter(std::string_view name) { return find_in(kSequenceFilters, name); }

}  // namespace braid::text::jinja
