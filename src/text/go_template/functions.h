// What Go templates can call, and how their values are written.
#pragma once

#include "braid/result.h"
#include "text/go_template/term.h"

#include <span>
#include <string>
#include <string_view>

namespace braid::text::go {

// Of "and" and "or" the interpreter takes care itself: they look at no more than they need.
bool is_function(std::string_view name);
Result<Term> call(std::string_view name, std::span<const Term> arguments);

// Neither nil, false, 0 nor empty.
bool is_true(const Term& term);
// As `{{ }}` writes it: texts as they are, nil as nothing, lists and objects as JSON.
std::string text_of(const Value& value);
std::string text_of(const Term& term);

}  // namespace braid::text::go
