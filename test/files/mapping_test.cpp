#include "files/mapping.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace braid::files {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kBytes = std::size_t{5} << 20;

// A line of /proc/self/smaps about the mapping that holds `address`.
std::string smaps(const std::byte* address, const std::string& name) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (std::istringstream range(line); range >> std::hex >> begin >> dash >> end && dash == '-') inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with(name + ":")) return line + " ";
  }
  return {};
}

TEST(Mapping, TellsTheSystemWhetherHugePagesAreWanted) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "this kernel has no transparent huge pages";
  const Mapping with = Mapping::reserve(kBytes, "test", HugePages::kTransparent).value();
  const Mapping without = Mapping::reserve(kBytes, "test", HugePages::kOff).value();
  EXPECT_THAT(smaps(with.data(), "VmFlags"), HasSubstr(" hg "));
  EXPECT_THAT(smaps(without.data(), "VmFlags"), testing::AllOf(HasSubstr(" nh "), Not(HasSubstr(" hg "))));
}

TEST(Mapping, ExplicitHugePagesAreThereOrTheErrorSaysWhatToDo) {
  const auto mapping = Mapping::reserve(kBytes, "test", HugePages::kExplicit);
  if (mapping) {
    EXPECT_EQ(mapping->size(), std::size_t{6} << 20);
    EXPECT_THAT(smaps(mapping->data(), "KernelPageSize"), HasSubstr(" 2048 kB"));
  } else {
    EXPECT_THAT(mapping.error().message, HasSubstr("3 huge pages of 2 MiB for the test"));
    EXPECT_THAT(mapping.error().message, HasSubstr("vm.nr_hugepages"));
  }
}

}  // namespace
}  // namespace braid::files
