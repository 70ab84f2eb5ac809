// Holds every #include of src/ and include/ against the table in docs/architecture.md.
#include "architecture/source_files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace braid::test {
namespace {

namespace fs = std::filesystem;

// Folder -> folders it may include, from the rows "| `folder` | ... | allowed |".
std::map<std::string, std::set<std::string>> allowed_arrows() {
  std::map<std::string, std::set<std::string>> arrows;
  std::ifstream document(kRoot / "docs/architecture.md");
  const std::regex row(R"(^\| `((?:src|include)/\w+)` \|[^|]*\|([^|]*)\|$)");
  const std::regex folder(R"((src|include)/\w+)");
  std::smatch match;
  for (std::string line; std::getline(document, line);) {
    if (!std::regex_match(line, match, row)) continue;
    const std::string allowed_text = match[2];
    auto& allowed = arrows[match[1]];
    for (std::sregex_iterator it(allowed_text.begin(), allowed_text.end(), folder), end; it != end; ++it) allowed.insert(it->str());
  }
  return arrows;
}

// The folder of the project that a header path names, or "" for a header from elsewhere.
std::string folder_of(const std::string& header, const std::map<std::string, std::set<std::string>>& arrows) {
  const std::string top = header.substr(0, header.find('/'));
  if (top == "braid") return "include/braid";
  const std::string folder = "src/" + top;
  return header.find('/') != std::string::npos && arrows.contains(folder) ? folder : "";
}

TEST(Architecture, TheTableNamesEveryFolder) {
  const auto arrows = allowed_arrows();
  for (const auto& entry : fs::directory_iterator(kRoot / "src"))
    EXPECT_TRUE(!entry.is_directory() || arrows.contains("src/" + entry.path().filename().string())) << entry.path();
}

TEST(Architecture, IncludesFollowTheTable) {
  const auto arrows = allowed_arrows();
  ASSERT_GE(arrows.size(), 7U);
  for (const auto& [folder, allowed] : arrows) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& include : includes_below(folder)) {
      const std::string target = folder_of(include.header, arrows);
      if (target.empty() || target == folder) continue;
      EXPECT_TRUE(allowed.contains(target)) << include.from << ":" << include.line << " includes <" << include.header << ">";
    }
  }
}

TEST(Architecture, ComputeLayersNeverIncludeAsio) {
  for (const std::string folder : {"src/kernels", "src/files", "src/text", "src/step", "src/cache", "src/store", "src/model"})
    for (const auto& include : includes_below(folder)) {
      EXPECT_EQ(include.header.find("boost/asio"), std::string::npos) << include.from << ":" << include.line;
      EXPECT_EQ(include.header.find("boost/beast"), std::string::npos) << include.from << ":" << include.line;
      EXPECT_NE(include.header, "braid/engine.h") << include.from << ":" << include.line << ": the engine contract brings Asio along";
    }
}

TEST(Architecture, NoFileOutgrowsOneSubject) {
  for (const std::string folder : {"src", "include", "test", "perf"})
    for (const fs::path& path : sources_below(folder)) {
      std::ifstream source(path);
      int lines = 0;
      for (std::string line; std::getline(source, line);) ++lines;
      EXPECT_LE(lines, 600) << path;
    }
}

}  // namespace
}  // namespace braid::test
