// The conjunction of two schemas, for allOf and for keywords beside $ref, anyOf and oneOf.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>

namespace braid::grammar::json {

// Neither has a $ref of its own. kInvalidArgument with the path of a keyword whose two values have no common form.
Result<Value> merge_schemas(const ValueDict& a, const ValueDict& b, const std::string& path);

// Whether the schema says anything besides annotations and definitions.
bool has_constraints(const ValueDict& schema);

// Whether no value can satisfy both, as far as their types, constants and required properties show. Neither has a $ref of its own.
bool provably_disjoint(const Value& a, const Value& b);

}  // namespace braid::grammar::json
