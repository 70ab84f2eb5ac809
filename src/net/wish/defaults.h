// The operator's defaults in a wish.
#pragma once

#include "braid/request_defaults.h"
#include "net/wish/wish.h"

namespace braid::net::wish {

// In place of a dialect's own; what the body says comes after.
void set_defaults(Wish& wish, const RequestDefaults& defaults);

}  // namespace braid::net::wish
