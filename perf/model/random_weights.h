// Random weights: what a model computes on them means nothing, how fast it does means all.
#pragma once

#include <cstdint>

namespace braid::perf {

// About normal (the sum of four uniform numbers), reproducible.
class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : state_(seed) {}
  float next(float deviation);

 private:
  std::uint64_t state_;
};

}  // namespace braid::perf
