#include "architecture/source_files.h"

#include <fstream>
#include <regex>

namespace braid::test {

namespace fs = std::filesystem;

std::vector<fs::path> sources_below(const std::string& folder) {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(kRoot / folder); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path& path = entry->path();
    if (path.filename() == "node_modules") entry.disable_recursion_pending();
    if (path.extension() == ".h" || path.extension() == ".cpp" || path.extension() == ".inc") found.push_back(path);
  }
  return found;
}

std::vector<Include> includes_below(const std::string& folder) {
  std::vector<Include> found;
  const std::regex include_line(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  for (const fs::path& path : sources_below(folder)) {
    const std::string name = fs::relative(path, kRoot);
    std::ifstream source(path);
    std::smatch match;
    int number = 0;
    for (std::string line; std::getline(source, line);) {
      ++number;
      if (line.find("include") == std::string::npos || !std::regex_search(line, match, include_line)) continue;
      found.push_back({name, number, match[2], match[1] == "\""});
    }
  }
  return found;
}

}  // namespace braid::test
