// The conjunction of two schemas, for allOf and for keywords beside $ref, anyOf and oneOf.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "grammar/json/keywords.h"

#include <string>

namespace braid::grammar::json {

// Both are modernised, and neither has a $ref of its own. Of a keyword whose two values have no common form the second is left out, by its
// path, as far as `leniency` allows.
Result<Value> merge_schemas(const ValueDict& a, const ValueDict& b, const std::string& path, Leniency& leniency);

// Whether the schema says anything besides annotations and definitions.
bool has_constraints(const ValueDict& schema);

// Whether no value can satisfy both, as far as their types, constants and required properties show. Neither has a $ref of its own.
bool provably_disjoint(const Value& a, const Value& b);

}  // namespace braid::grammar::json
