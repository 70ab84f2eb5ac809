// How a camera was held.
#pragma once

#include "images/picture.h"

#include <string_view>

namespace braid::images {

// Of EXIF data, with or without the words "Exif" in front: 1 to 8; 1 where it says nothing that is understood.
int orientation_in(std::string_view exif);

Picture upright(Picture picture, int orientation);

}  // namespace braid::images
