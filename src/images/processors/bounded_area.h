// The size of a picture of which the area is bounded, and the sides are multiples.
#pragma once

#include "images/picture.h"

#include <cstdint>

namespace braid::images {

// Both sides to the nearest multiples of `unit`, at least `least_side`; where that is more than `most` pixels, or less than `least`, the
// picture is scaled to that area, and the sides go down, or up, to multiples.
Size bounded_area(Size size, std::int32_t unit, std::int64_t least, std::int64_t most, std::int32_t least_side);

}  // namespace braid::images
