// Items that a Responses request names instead of repeating them.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/responses/store.h"

#include <cstddef>
#include <string>

namespace braid::net::responses {

// Puts the item itself in the place of each {"type":"item_reference","id":…} of `input`: of a response that is still kept.
Result<void> resolve_references(Value& input, const Shelf& shelf, const std::string& path);

// What the responses that a request's body names take of the store, each as often as it is named.
std::size_t named_bytes(const Value& body, const Shelf& shelf);

}  // namespace braid::net::responses
