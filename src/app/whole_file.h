// A file's bytes as one string.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace braid::app {

// nullopt: it cannot be opened, or what it opens cannot be read (a folder, a broken disk). Of one that is larger than `most`, which may have
// no end at all, more than that comes, and not the rest.
std::optional<std::string> read_whole_file(const std::string& path, std::size_t most);

}  // namespace braid::app
