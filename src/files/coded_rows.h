// Matrices whose values are codes that no type of a GGUF file has, as pre-quantised folders hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::files {

// Immutable: any thread may read. The bytes belong to the folder's mappings.
class CodedRows {
 public:
  virtual ~CodedRows() = default;

  virtual std::int64_t rows() const = 0;
  // False: it stands for rows that are not there, whose places alone are of interest.
  virtual bool has_values() const { return true; }
  // Row `row`, whose values are what the codes mean, in float32.
  virtual void read(std::int64_t row, float* out) const = 0;
  // Row `row` as the type that GgufTensor::type names: without loss where that type has the values, otherwise the nearest.
  virtual void encode(std::int64_t row, std::byte* out) const = 0;
  // Scales and whatever else decides the values, besides the codes.
  virtual std::vector<std::span<const std::byte>> other_bytes() const = 0;
};

}  // namespace braid::files
