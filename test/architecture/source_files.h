// The project's own C++ files and the #include lines in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid::test {

inline const std::filesystem::path kRoot = BRAID_SOURCE_DIR;

struct Include {
  std::string from;  // repository path
  int line = 0;
  std::string header;
  bool is_quoted = false;  // or in angle brackets
};

// All .h, .cpp and .inc files below a folder of the repository, node_modules left out.
std::vector<std::filesystem::path> sources_below(const std::string& folder);
std::vector<Include> includes_below(const std::string& folder);

}  // namespace braid::test
