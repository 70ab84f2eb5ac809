// Filters that apply another filter or test to each item.
#include "text/jinja/filters.h"
#include "text/jinja/operators.h"

#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

// Takes the first of the remaining arguments away and returns it as text; fails when there is none.
std::string take_name(Runtime& runtime, Arguments& arguments, std::string_view filter) {
  if (arguments.rest.empty()) {
    runtime.fail(fmt::format("{} needs an argument", filter));
    return {};
  }
  const std::string name = runtime.to_text(arguments.rest.front());
  arguments.rest.erase(arguments.rest.begin());
  return name;
}

// Jinja's selecting filters take whatever is false, none for one, as an empty list.
std::vector<Object> items_of(Runtime& runtime, const Object& value) {
  return value.truth() ? runtime.iterate(value) : std::vector<Object>();
}

Object apply(Runtime& runtime, const Native& native, Object value, const Arguments& arguments) {
  Callable::Call call;
  call.positional.push_back(std::move(value));
  call.positional.insert(call.positional.end(), arguments.rest.begin(), arguments.rest.end());
  call.named = arguments.named;
  return run_native(runtime, native, std::move(call));
}

Object map_attribute(Runtime& runtime, Arguments& arguments) {
  Object path;
  Object fallback;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") {
      path = value;
    } else if (name == "default") {
      fallback = value;
    } else {
      return runtime.fail(fmt::format("map has no argument '{}'", name));
    }
  }
  if (path.is_missing()) return runtime.fail("map needs a filter or an attribute");
  std::vector<Object> results;
  for (const auto& item : items_of(runtime, arguments[0])) {
    results.push_back(get_path(runtime, item, path, fallback));
    if (runtime.failed()) break;
  }
  return runtime.sequence(std::move(results), Sequence::Kind::kGenerator);
}

Object run_map(Runtime& runtime, Arguments& arguments) {
  if (arguments.rest.empty()) return map_attribute(runtime, arguments);
  const std::string name = take_name(runtime, arguments, "map");
  const Native* filter = find_filter(name);
  if (filter == nullptr) return runtime.fail(fmt::format("there is no filter '{}'", name));
  std::vector<Object> results;
  for (auto& item : items_of(runtime, arguments[0])) {
    results.push_back(apply(runtime, *filter, std::move(item), arguments));
    if (runtime.failed()) break;
  }
  return runtime.sequence(std::move(results), Sequence::Kind::kGenerator);
}

// The items, or those with an attribute, that pass a test (truth without one).
Object choose(Runtime& runtime, Arguments& arguments, bool wanted, bool by_attribute) {
  Object path;
  if (by_attribute) {
    if (arguments.rest.empty()) return runtime.fail("selectattr and rejectattr need an attribute");
    path = arguments.rest.front();
    arguments.rest.erase(arguments.rest.begin());
  }
  const Native* test = nullptr;
  if (!arguments.rest.empty()) {
    const std::string name = take_name(runtime, arguments, "select");
    test = find_test(name);
    if (test == nullptr) return runtime.fail(fmt::format("there is no test '{}'", name));
  }
  std::vector<Object> results;
  for (const auto& item : items_of(runtime, arguments[0])) {
    Object value = by_attribute ? get_path(runtime, item, path) : item;
    if (runtime.failed()) break;
    const bool holds = test == nullptr ? value.truth() : apply(runtime, *test, std::move(value), arguments).truth();
    if (holds == wanted) results.push_back(item);
  }
  return runtime.sequence(std::move(results), Sequence::Kind::kGenerator);
}

template <bool kWanted, bool kByAttribute>
Object run_choose(Runtime& runtime, Arguments& arguments) {
  return choose(runtime, arguments, kWanted, kByAttribute);
}

constexpr Native kSelectionFilters[] = {
    {"map", "value * **", run_map},
    {"reject", "value * **", run_choose<false, false>},
    {"rejectattr", "value * **", run_choose<false, true>},
    {"select", "value * **", run_choose<true, false>},
    {"selectattr", "value * **", run_choose<true, true>},
};

}  // namespace

const Native* find_selection_filter(std::string_view name) { return find_in(kSelectionFilters, name); }

}  // namespace braid::text::jinja
