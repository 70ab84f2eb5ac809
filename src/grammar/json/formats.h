// The values of JSON Schema's `format` keyword, as regular expressions that match a subset of what each allows.
#pragma once

#include <optional>
#include <string_view>

namespace braid::grammar::json {

std::optional<std::string_view> format_pattern(std::string_view format);

}  // namespace braid::grammar::json
