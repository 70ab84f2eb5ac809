// Which models somebody may mean by a name that none has exactly.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

// Those of the name in other letter cases, or else with any tag where `asked` has none, or else all that begin with it.
std::vector<std::string> names_meant(std::string_view asked, std::span<const std::string> names);

// At most `most` that are nearest by letters that differ, if they are near at all.
std::vector<std::string> nearest_names(std::string_view asked, std::span<const std::string> names, std::size_t most);

}  // namespace braid::registry
