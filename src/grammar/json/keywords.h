// The vocabulary of JSON Schema (draft 2020-12) as far as it can be honoured.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace braid::grammar::json {

// The error of a schema whose keyword at `place` cannot be honoured.
Error refused(const std::string& place, std::string_view why);

// Refuses keywords that are not honoured, by their path; annotations are skipped. Checks the type of every keyword's value.
std::optional<Error> check_keywords(const ValueDict& schema, const std::string& path);

// What a schema says about types. Integers are numbers: kNumber always comes with kInteger unless only whole numbers are meant.
enum class Type : std::uint8_t { kObject, kArray, kString, kNumber, kInteger, kBoolean, kNull };
using Types = std::set<Type>;

// The types that `type` names, or all; then, when `type` is missing and other keywords are about certain types, only those.
Types types_of(const ValueDict& schema);
Type type_of_value(const Value& value);
bool has_type(const Types& types, const Value& value);

const Value* find(const ValueDict& schema, std::string_view keyword);

// A count such as maxLength, which check_keywords found to be one.
std::uint32_t count_or(const ValueDict& schema, std::string_view keyword, std::uint32_t otherwise);

// Of two numbers.
bool less(const Value& a, const Value& b);

// Whether two values are the same to JSON Schema: 1 and 1.0 are, members in any order are.
bool same_value(const Value& a, const Value& b);

}  // namespace braid::grammar::json
