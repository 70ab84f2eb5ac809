// Items that a Responses request names instead of repeating them.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/responses/store.h"

#include <string>

namespace braid::net::responses {

// Puts the item itself in the place of each {"type":"item_reference","id":…} of `input`: of a response that is still kept.
Result<void> resolve_references(Value& input, const Shelf& shelf, const std::string& path);

}  // namespace braid::net::responses
