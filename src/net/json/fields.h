// Typed reading of a Value; each error names the offending field by its path, such as `messages[1].content`.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace braid::net::json {

// "a string", "an object" …: what `value` is, for error messages.
std::string_view type_name(const Value& value);

Error wrong_type(const std::string& path, std::string_view expected, const Value& got);

Result<bool> read_bool(const Value& value, const std::string& path);
Result<std::int64_t> read_integer(const Value& value, const std::string& path, std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                                  std::int64_t high = std::numeric_limits<std::int64_t>::max());
Result<float> read_number(const Value& value, const std::string& path, float low, float high);
Result<std::string> read_string(const Value& value, const std::string& path);

std::string at_index(const std::string& path, std::size_t index);   // path[index]
std::string at_key(const std::string& path, std::string_view key);  // path.key

}  // namespace braid::net::json
