// What may be meant where a name is misspelt.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// How many bytes are to be changed, put in or taken out to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first of `names` that is the fewest bytes away from `name`, and at most `most`; empty: none is.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names, std::size_t most);

}  // namespace braid::app
