// Writes GGUF files (version 3), tensor after tensor, so that no more than a part of one is in memory.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace braid::files {

// What is written of a tensor before its bytes.
struct GgufTensorHead {
  std::string name;
  std::uint32_t type = 0;
  std::vector<std::int64_t> shape;  // shape[0] is the contiguous dimension
  std::uint64_t bytes = 0;
};

// Whole numbers are written in 32 bits where they fit, others as floats of 32 bits, as converters do. Bytes are type and value as another
// file has them.
struct GgufEntry {
  std::string key;
  std::variant<GgufValue, std::uint16_t, std::span<const std::byte>> value;
};

// All that is in a file but its alignment, as it has it.
std::vector<GgufEntry> entries_of(const GgufFile& file);

class GgufOutput {
 public:
  // kIo when the file cannot be made.
  static Result<GgufOutput> create(const std::string& path, const std::vector<GgufEntry>& metadata,
                                   const std::vector<GgufTensorHead>& tensors);

  // The bytes of the tensors in the order of their heads, in pieces of any size, none of which covers two tensors.
  void append(std::span<const std::byte> bytes);
  void end_tensor();

  // kIo when not all could be written; the file is then removed.
  Result<void> finish();

 private:
  GgufOutput() = default;
  std::string path_;
  std::ofstream file_;
  std::uint64_t written_ = 0;  // of tensors
};

}  // namespace braid::files
