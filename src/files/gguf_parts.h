// Splits a model into several GGUF files, and joins them again: tensors and metadata stay the bytes that they are.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/progress.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::files {

// When a part is full. The first bound that is reached ends it; a tensor is never divided.
struct PartBounds {
  std::uint64_t bytes = UINT64_MAX;  // of tensors
  std::uint64_t tensors = UINT64_MAX;
};

// The files that split_model would write: "<stem>-00001-of-0000N.gguf" and so on.
std::vector<std::string> part_paths(const GgufFile& file, const std::string& stem, const PartBounds& bounds);

// Writes them, named and marked as llama.cpp does. kIo when one cannot be written; kInvalidArgument where there would be more than there
// may be.
Result<std::vector<std::string>> split_model(const GgufFile& file, const std::string& stem, const PartBounds& bounds,
                                             const Progress& progress);

// Writes all parts, which `file` has opened together, as one file.
Result<void> merge_model(const GgufFile& file, const std::string& path, const Progress& progress);

}  // namespace braid::files
