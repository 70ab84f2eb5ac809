// The input of a kept response as a list of items.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>
#include <string_view>

namespace braid::net::responses {

// What the API's items have and a request may leave out: an id of their own, which resolve_references() finds, a type, a status, and
// content in parts.
void complete_items(ValueList& items, std::string_view response_id);

// The page of a list of complete items that `order`, `limit` and `after` of the query ask for, as JSON.
Result<std::string> list_items(const ValueList& items, std::string_view query);

}  // namespace braid::net::responses
