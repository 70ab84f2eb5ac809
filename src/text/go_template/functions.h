// What Go templates can call, and how their values are written.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <span>
#include <string>
#include <string_view>

namespace braid::text::go {

// Of "and" and "or" the interpreter takes care itself: they look at no more than they need.
bool is_function(std::string_view name);
Result<Value> call(std::string_view name, std::span<const Value> arguments);

// Neither nil, false, 0 nor empty.
bool is_true(const Value& value);
// As `{{ }}` writes it: texts as they are, nil as nothing, lists and objects as JSON.
std::string text_of(const Value& value);
// As Go's encoding/json does.
std::string json_of(const Value& value);

}  // namespace braid::text::go
