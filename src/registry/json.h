// JSON of manifests, configurations and hubs, in and out.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::registry {

// kBadFile with `what` in its sentence. At most 100 levels; of equal keys the first one counts.
Result<Value> parse_json(std::string_view text, std::string_view what);

std::string to_json(const Value& value);
void append_json_string(std::string& out, std::string_view text);

// Of an object; what is missing or of another type gives the fallback.
std::string text_member(const Value& value, std::string_view name);
std::int64_t number_member(const Value& value, std::string_view name, std::int64_t fallback);

}  // namespace braid::registry
