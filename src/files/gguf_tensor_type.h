// How ggml's tensor types are stored. Covers every type a GGUF file may name, also those this build cannot compute with.
#pragma once

#include <cstdint>

namespace braid::files {

struct GgufTensorType {
  std::uint32_t id;
  const char* name;
  std::uint32_t block_values;  // consecutive values of a row that are encoded together
  std::uint32_t block_bytes;
};

// Null for an id that is not known.
const GgufTensorType* gguf_tensor_type(std::uint32_t id);

}  // namespace braid::files
