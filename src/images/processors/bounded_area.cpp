#include "images/processors/bounded_area.h"

#include "images/processor.h"

#include <algorithm>
#include <cmath>

namespace braid::images {

Size bounded_area(Size size, std::int32_t unit, std::int64_t least, std::int64_t most, std::int32_t least_side) {
  const auto nearest = [&](std::int32_t side) {
    return std::max(static_cast<std::int32_t>(round_even(static_cast<double>(side) / unit)) * unit, least_side);
  };
  const Size out{nearest(size.height), nearest(size.width)};
  const auto area = static_cast<double>(size.area());
  if (out.area() > most) {
    const double scale = std::sqrt(area / static_cast<double>(most));
    const auto down = [&](std::int32_t side) { return std::max(unit, static_cast<std::int32_t>(std::floor(side / scale / unit)) * unit); };
    return {down(size.height), down(size.width)};
  }
  if (out.area() < least) {
    const double scale = std::sqrt(static_cast<double>(least) / area);
    const auto up = [&](std::int32_t side) { return static_cast<std::int32_t>(std::ceil(side * scale / unit)) * unit; };
    return {up(size.height), up(size.width)};
  }
  return out;
}

}  // namespace braid::images
