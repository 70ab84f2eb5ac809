// Activations, a row for each token of a pass.
#pragma once

#include "kernels/cache_hints.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

// Rows of floats. They lie an odd number of cache lines apart, so that a column of them falls into different sets of a cache: products
// write 16 rows at a time (perf/README.md).
struct Rows {
  float* data = nullptr;
  std::int64_t stride = 0;  // floats from a row to the next

  float* operator[](std::int64_t row) const { return data + row * stride; }

  // Row `row` of `width` floats each. The one after it is fetched, since another member of the team has written half of it.
  const float* fetch(std::int64_t row, std::int64_t width) const {
    kernels::prefetch_lines<kernels::kSecondLevel>(reinterpret_cast<const std::byte*>((*this)[row + 1]), width / 16);
    return (*this)[row];
  }
};

// Rows that one claim of row-wise work covers: a single row never wakes the team.
inline constexpr std::int64_t kRowChunk = 4;

}  // namespace braid::model
