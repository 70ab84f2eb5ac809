// Finds the few large values among many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace braid::model {

// Calls take(index) for every value above `threshold`, in order; `take` may raise the threshold. Most blocks have none, which a
// vectorised test finds.
template <class Take>
void scan_above(std::span<const float> values, const float& threshold, Take&& take) {
  constexpr std::size_t kScanned = 64;
  for (std::size_t begin = 0; begin < values.size(); begin += kScanned) {
    const std::size_t end = std::min(values.size(), begin + kScanned);
    int any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= static_cast<int>(values[i] > threshold);
    if (any == 0) continue;
    for (std::size_t i = begin; i < end; ++i)
      if (values[i] > threshold) take(i);
  }
}

}  // namespace braid::model
