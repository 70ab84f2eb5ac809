// From the fields of a body to one wish.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"
#include "net/wish/messages.h"
#include "net/wish/wish.h"

#include <string_view>

namespace braid::net::wish {

// Once all fields of a body are read: what takes the place of others, and what only shows of them together. kInvalidArgument with the
// field that does not go with another.
Result<void> finish_common(BodyFields& fields);

// A chat with these messages, which are normalised. `field` is where they came from, for errors about all of them.
Result<Wish> finish_chat(BodyFields fields, ValueList messages, const MessagePath& path_of, std::string_view field);

}  // namespace braid::net::wish
