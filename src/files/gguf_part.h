// The contents of one GGUF file. A split model has several, which GgufFile joins.
#pragma once

#include "files/gguf.h"

#include <utility>

namespace braid::files {

struct GgufPart {
  std::uint32_t version = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;
  std::vector<std::span<const std::byte>> stored_values = {};  // of each of `metadata`: its type and value as the file has them
};

// Tensors point into the source's bytes.
Result<GgufPart> parse_gguf(const ByteSource& source);

}  // namespace braid::files
