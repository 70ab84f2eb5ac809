// A file's bytes as one string.
#pragma once

#include <optional>
#include <string>

namespace braid::app {

// nullopt: it cannot be opened, or what it opens cannot be read (a folder, a broken disk).
std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace braid::app
