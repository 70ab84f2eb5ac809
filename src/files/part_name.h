// What the files of a split model are called: STEM-00001-of-0000N, before ".gguf".
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace braid::files {

struct PartName {
  std::string_view stem;   // of the name that was given; never empty
  std::size_t number = 0;  // from 1 on in files that are right
};

// None: `name`, a file's without folder and extension, is no part's.
std::optional<PartName> part_name(std::string_view name);

}  // namespace braid::files
