// JSON in: a request's body becomes a Value. The only user of simdjson.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>

namespace braid::net::json {

inline constexpr int kMaxDepth = 128;
inline constexpr int kMaxValues = 2'000'000;  // a Value takes 40 bytes, the byte of `[1,1,…]` it came from only 2

// `text` may be reallocated (simdjson wants room behind it); its content stays, but whole numbers beyond 64 bits may get an exponent of
// zero there, and escapes of half a character become U+FFFD. The former are LongIntegers. A byte order mark before the document is ignored.
// kInvalidArgument when it is no JSON document, holds bytes that are not UTF-8, or exceeds the limits above. Of equal keys of one object the
// last one counts, as in JavaScript and Python.
Result<Value> parse(std::string& text);

// The same for what must be an object.
Result<Value> parse_object(std::string& text);

}  // namespace braid::net::json
