// The optional folder with real models and vocabularies that BRAID_TEST_DATA names.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace braid::test {

// The path of `relative` within the folder; nothing when the variable is unset or empty: the test then skips.
inline std::optional<std::string> test_data(const std::string& relative) {
  const char* folder = std::getenv("BRAID_TEST_DATA");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  return std::string(folder) + "/" + relative;
}

}  // namespace braid::test
