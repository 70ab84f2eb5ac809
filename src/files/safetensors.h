// safetensors (https://github.com/huggingface/safetensors): named tensors behind a JSON header.
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace braid::files {

struct SafeTensor {
  std::string dtype;  // "F32", "BF16", "I64" and so on
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // belongs to whoever gave the file's bytes
};

struct SafeTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, SafeTensor> tensors;
};

// Header and tensors in the order of their names.
std::vector<std::byte> write_safetensors(const SafeTensors& contents);

// kBadFile with the reason: every length is checked, tensors neither overlap nor leave gaps, sizes are those of type and shape.
Result<SafeTensors> parse_safetensors(std::span<const std::byte> bytes);

}  // namespace braid::files
