// What a server says, on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace braid::bench {

// `text` with its control characters (C0, DEL, C1) as \xNN: in one line, and it steers no terminal.
std::string printable(std::string_view text);

}  // namespace braid::bench
