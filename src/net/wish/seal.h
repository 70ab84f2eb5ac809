// Text that a client keeps for the server without reading it: thoughts, summaries of conversations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid::net::wish {

// One word of letters, digits, dashes, dots and underscores. It is no secret from who has it, and needs no key, so that it outlives the
// process and any server opens it; a digest shows whether it came back whole.
std::string sealed(std::string_view text);

// nullopt: not one of those, or not whole.
std::optional<std::string> opened(std::string_view seal);

}  // namespace braid::net::wish
