// One include style and one layout in all sources.
#include "architecture/source_files.h"
#include "support/folder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/wait.h>

namespace braid::test {
namespace {

namespace fs = std::filesystem;
constexpr std::array kFolders = {"include", "src", "test", "perf"};
constexpr std::array kIncludeRoots = {"include", "src", "test", "."};  // "perf/kernels/bench.h" is looked up from the repository

struct Output {
  std::string text;
  int exit_code = -1;
};

Output output_of(const std::string& command) {
  Output output;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;) output.text.append(part.data(), size);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  return output;
}

// Quotes and the whole path say that a header is the project's own; nothing is looked up beside the file that includes it.
TEST(Layout, OwnHeadersAreInQuotesByTheirWholePath) {
  std::size_t own = 0;
  for (const char* folder : kFolders)
    for (const Include& include : includes_below(folder)) {
      const bool is_own = std::ranges::any_of(kIncludeRoots, [&](const char* root) {
        const fs::path path = kRoot / root / include.header;
        return fs::is_regular_file(path) || fs::is_regular_file(path.string() + ".in");  // CMake makes it
      });
      EXPECT_EQ(include.is_quoted, is_own) << include.from << ":" << include.line << ": " << include.header;
      own += is_own ? 1 : 0;
    }
  EXPECT_GT(own, 1000U) << "the test reads the wrong files";
}

// A function that only prefetches is dropped by GCC unless it is written as in prefetch.h; kernels inline theirs.
TEST(Layout, NobodyButKernelsPrefetchesByHand) {
  std::size_t found = 0;
  for (const char* folder : {"include", "src"})
    for (const fs::path& path : sources_below(folder)) {
      std::ifstream file(path);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find("__builtin_prefetch") == std::string::npos && text.find("_mm_prefetch") == std::string::npos) continue;
      ++found;
      const std::string name = fs::relative(path, kRoot).generic_string();
      EXPECT_TRUE(name == "include/braid/prefetch.h" || name.starts_with("src/kernels/")) << name << " has braid/prefetch.h for that";
    }
  EXPECT_GT(found, 1U) << "the test reads the wrong files";
}

// The header is compiled without the forms of code that its library chooses among: another parser than that of dom would be the slowest.
TEST(Layout, JsonIsParsedByTheLibraryAlone) {
  std::size_t found = 0;
  for (const char* folder : {"include", "src"})
    for (const fs::path& path : sources_below(folder)) {
      std::ifstream file(path);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      found += text.find("simdjson::dom") != std::string::npos ? 1 : 0;
      const bool is_compiled_here =
          text.find("simdjson::ondemand") != std::string::npos || text.find("simdjson::builtin") != std::string::npos;
      EXPECT_FALSE(is_compiled_here) << fs::relative(path, kRoot).generic_string() << " can use simdjson::dom";
    }
  EXPECT_GT(found, 10U) << "the test reads the wrong files";
}

TEST(Layout, SourcesAreAsClangFormatLeavesThem) {
  const std::string program = BRAID_CLANG_FORMAT;
  if (program.empty()) GTEST_SKIP() << "clang-format is not installed";
  const std::string version = output_of(program + " --version").text;
  if (version.find("version 14.") == std::string::npos) GTEST_SKIP() << "the layout is that of clang-format 14; here is " << version;
  const test::Folder scratch;
  const std::string list = scratch / "braid_sources.txt";
  std::ofstream names(list);
  for (const char* folder : kFolders)
    for (const fs::path& path : sources_below(folder)) names << path.string() << "\n";
  names.close();
  const Output output = output_of(program + " --dry-run -Werror @" + list);
  EXPECT_EQ(output.exit_code, 0) << output.text.substr(0, 4000) << "\nclang-format -i, version 14, mends it";
}

}  // namespace
}  // namespace braid::test
