// The vocabulary of JSON Schema: which keywords restrict, and what their values must be.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "grammar/json/places.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::grammar::json {

// The error of a schema whose keyword at `place` cannot be honoured.
Error refused(const std::string& place, std::string_view why);

// What becomes of keywords that restrict and cannot be honoured: an error, or their places are kept and they are left out.
class Leniency {
 public:
  // `root` outlives this and stands at `path`.
  Leniency(bool strict, const Value& root, std::string path) : strict_(strict), places_(root, std::move(path)) {}

  // Nothing: the keyword is to be left out.
  std::optional<Error> leave_out(const std::string& place, std::string_view why);

  std::vector<std::string> take() { return std::move(left_out_); }

 private:
  bool strict_;
  Places places_;
  std::vector<std::string> left_out_;  // as written, in the order in which they were found
  std::set<std::string> known_;        // as they were come to
};

// The schema in the words of draft 2020-12 (tuples and exclusive bounds are from earlier ones too), with values of the right kinds: a
// keyword whose value is of another or that is never honoured is left out, and in a list or dict only what is wrong of it. What is unknown
// is an annotation.
Result<ValueDict> usable_keywords(const ValueDict& schema, const std::string& path, Leniency& leniency);

// Whether a keyword restricts what satisfies a schema, as far as it is known.
bool restricts(std::string_view keyword);

// What a schema says about types. Integers are numbers: kNumber always comes with kInteger unless only whole numbers are meant.
enum class Type : std::uint8_t { kObject, kArray, kString, kNumber, kInteger, kBoolean, kNull };
using Types = std::set<Type>;

// The types that `type` names, or all; then, when `type` is missing and other keywords are about certain types, only those.
Types types_of(const ValueDict& schema);
Type type_of_value(const Value& value);
bool has_type(const Types& types, const Value& value);

const Value* find(const ValueDict& schema, std::string_view keyword);

// A count such as maxLength.
std::uint32_t count_or(const ValueDict& schema, std::string_view keyword, std::uint32_t otherwise);

// Whether a value that has one of the schema's types is within its lengths and bounds.
bool within_bounds(const ValueDict& schema, const Value& value);

// Of two numbers.
bool less(const Value& a, const Value& b);

// Whether two values are the same to JSON Schema: 1 and 1.0 are, members in any order are.
bool same_value(const Value& a, const Value& b);

}  // namespace braid::grammar::json
