// Random values in the encodings of GGUF files: what a model computes on them means nothing, how fast it does means all.
#pragma once

#include <kernels/weight_type.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::perf {

// About normal (the sum of four uniform numbers), reproducible.
class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : state_(seed) {}
  float next(float deviation);

 private:
  std::uint64_t state_;
};

// Encodes `count` values, a multiple of the type's block, and appends them to `out`.
void encode(kernels::WeightType type, const float* values, std::size_t count, std::vector<std::byte>& out);

}  // namespace braid::perf
