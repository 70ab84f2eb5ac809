// Functions, filters, tests and methods that the interpreter brings along: plain functions in tables.
#pragma once

#include "text/jinja/runtime.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text::jinja {

// Arguments in the order of the parameters; what was not given is missing.
struct Arguments {
  std::vector<Object> values;
  std::vector<Object> rest;                           // of a function whose parameters end in *
  std::vector<std::pair<std::string, Object>> named;  // of one whose parameters end in **

  const Object& operator[](std::size_t index) const { return values[index]; }
  bool given(std::size_t index) const { return !values[index].is_missing(); }
};

struct Native {
  std::string_view name;
  // Names with spaces between: "value default? *". A "?" marks what may be left out, "*" takes the other positional
  // arguments, "**" the other named ones.
  std::string_view parameters;
  Object (*run)(Runtime& runtime, Arguments& arguments);
};

// Binds and runs. Fails for an argument too many, unknown or missing.
Object run_native(Runtime& runtime, const Native& native, Callable::Call&& call);

// Null when there is none of that name. A filter or test gets its value as the first argument.
const Native* find_filter(std::string_view name);
const Native* find_test(std::string_view name);
const Native* find_global(std::string_view name);
// A method of a value of that type; its first argument is the value.
const Native* find_text_method(std::string_view name);
const Native* find_list_method(std::string_view name);
const Native* find_dict_method(std::string_view name);

// A function, or a method of `self` when that is not missing.
Object make_callable(const Native& native, Object self = {});

template <std::size_t kCount>
const Native* find_in(const Native (&table)[kCount], std::string_view name) {
  for (const auto& native : table)
    if (native.name == name) return &native;
  return nullptr;
}

}  // namespace braid::text::jinja
