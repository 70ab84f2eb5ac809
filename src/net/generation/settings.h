// How a generation chooses its tokens, in llama-server's words.
#pragma once

#include "net/wish/wish.h"

#include <string>

namespace braid::net {

// The object "params" of /slots and /props.
void append_settings(std::string& out, const Wish& wish);

}  // namespace braid::net
