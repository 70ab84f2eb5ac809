// Settings by the names that another server's configuration has for them.
#pragma once

#include <string_view>

namespace braid::app {

// What stands here for a key of another server's file, as the end of a sentence; empty: nothing is known of it.
std::string_view foreign_setting(std::string_view key);

}  // namespace braid::app
