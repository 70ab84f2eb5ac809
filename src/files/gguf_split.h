// Models split over several files named STEM-00001-of-0000N.gguf.
#pragma once

#include "files/gguf_part.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace braid::files {

struct SplitPosition {
  std::uint64_t number = 0;   // from 0
  std::uint64_t count = 1;    // 1: not split
  std::uint64_t tensors = 0;  // of all parts
};

// What a part says about itself; kBadFile when that contradicts itself.
Result<SplitPosition> split_position(const std::string& name, const GgufPart& part);

// Opens the parts after `first` (which was read from `path`), adds their tensors to it and returns their mappings.
Result<std::vector<std::shared_ptr<const ByteSource>>> open_other_parts(const std::string& path, GgufPart& first);

}  // namespace braid::files
