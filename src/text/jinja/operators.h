// Operators, subscripts and attributes of the language, as Python has them.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

#include <string_view>

namespace braid::text::jinja {

Object apply_binary(Runtime& runtime, Operator op, const Object& left, const Object& right);
bool apply_comparison(Runtime& runtime, Operator op, const Object& left, const Object& right);
Object positive(Runtime& runtime, const Object& value);
Object negate(Runtime& runtime, const Object& value);

// value.name: a method first, then a member. `name` must outlive the result.
Object get_attribute(Runtime& runtime, const Object& value, const std::string& name);
// Without looking for a member of a dict of that name. Undefined where there is none.
Object get_own_attribute(Runtime& runtime, const Object& value, std::string_view name);
// value[key]: a member first, then a method.
Object get_item(Runtime& runtime, const Object& value, const Object& key);
// value[start:stop:step]; what is missing or none is Python's default.
Object get_slice(Runtime& runtime, const Object& value, const Object& start, const Object& stop, const Object& step);
// Attributes as the filters name them: "a.b.0". Whatever is undefined on the way becomes the fallback, if that is given.
Object get_path(Runtime& runtime, const Object& value, const Object& path, const Object& fallback = {});

}  // namespace braid::text::jinja
