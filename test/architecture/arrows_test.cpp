// Holds every #include of src/ and include/ against the table in docs/architecture.md.
#include "architecture/source_files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string path;
  std::set<std::string> allowed;  // folders that it may include
};

// The rows "| `folder` | ... | allowed |" whose folders are `pattern`, in the order of the document.
std::vector<Folder> rows_of(const std::string& pattern) {
  std::vector<Folder> rows;
  std::ifstream document(kRoot / "docs/architecture.md");
  const std::regex row("^\\| `(" + pattern + ")` \\|[^|]*\\|([^|]*)\\|$");
  const std::regex folder(pattern);
  std::smatch match;
  for (std::string line; std::getline(document, line);) {
    if (!std::regex_match(line, match, row)) continue;
    const std::string allowed = match[2];
    rows.push_back({match[1], {}});
    for (std::sregex_iterator it(allowed.begin(), allowed.end(), folder), end; it != end; ++it) rows.back().allowed.insert(it->str());
  }
  return rows;
}

std::map<std::string, std::set<std::string>> allowed_arrows() {
  std::map<std::string, std::set<std::string>> arrows;
  for (Folder& row : rows_of(R"((?:src|include)/\w+)")) arrows[row.path] = std::move(row.allowed);
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

TEST(Architecture, FoldersOfNetIncludeOnlyWhatStandsAboveThemInTheirTable) {
  std::set<std::string> above;
  for (const Folder& row : rows_of(R"(net/\w+)")) {
    for (const std::string& allowed : row.allowed) EXPECT_TRUE(above.contains(allowed)) << row.path << " may include " << allowed;
    for (const auto& include : includes_below("src/" + row.path)) {
      if (!include.header.starts_with("net/")) continue;
      const std::string target = include.header.substr(0, include.header.find('/', 4));
      EXPECT_TRUE(target == row.path || row.allowed.contains(target))
          << include.from << ":" << include.line << " includes \"" << include.header << '"';
    }
    above.insert(row.path);
  }
  for (const auto& entry : fs::directory_iterator(kRoot / "src/net")) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name == "CMakeLists.txt" || above.contains("net/" + name)) << entry.path() << " is not in the table";
  }
}

TEST(Architecture, ComputeLayersNeverIncludeAsio) {
  for (const std::string folder : {"src/kernels", "src/files", "src/text", "src/images", "src/step", "src/cache", "src/store", "src/model"})
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

// Files whose code, comments aside, names what other systems lack.
std::set<std::string> files_with_linux() {
  const std::regex linux_alone(
      R"(linux/|liburing|sys/auxv|sys/eventfd|sys/epoll|sys/inotify|sys/syscall|sys/prctl|sched_[gs]etaffinity|SO_PEERCRED|getrandom\()"
      R"(|MADV_|MAP_NORESERVE|"/?proc/|"/?sys/|TCP_USER_TIMEOUT|NOTIFY_SOCKET|LISTEN_FDS|O_DIRECT|O_TMPFILE|accept4|fallocate)");
  std::set<std::string> found;
  for (const char* folder : {"src", "include"}) {
    for (const fs::path& path : sources_below(folder)) {
      std::ifstream source(path);
      for (std::string line; std::getline(source, line);) {
        if (std::regex_search(line.substr(0, line.find("//")), linux_alone)) found.insert(fs::relative(path, kRoot).string());
      }
    }
  }
  return found;
}

TEST(Architecture, WhatIsLinuxsAloneStandsInTheFilesThatAreListed) {
  std::set<std::string> listed;
  std::ifstream document(kRoot / "docs/porting.md");
  const std::regex row(R"(^\| `(src/\S+|include/\S+)` \|.*)");
  std::smatch match;
  for (std::string line; std::getline(document, line);)
    if (std::regex_match(line, match, row)) listed.insert(match[1]);
  EXPECT_EQ(listed, files_with_linux());
}

}  // namespace
}  // namespace braid::test
