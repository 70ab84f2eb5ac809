// The contents of one GGUF file. A split model has several, which GgufFile joins.
#pragma once

#include "files/gguf.h"

#include <utility>

namespace braid::files {

struct GgufPart {
  std::uint32_t version = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;
};

// Tensors point into the source's bytes.
Result<GgufPart> parse_gguf(const ByteSource& source);

}  // namespace braid::files
