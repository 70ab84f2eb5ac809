// An image as a model's tower reads it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace braid {

// A part of an image, or all of it smaller: float planes R, G, B, each [height, width], row by row from the top.
struct PixelTile {
  std::int32_t height = 0;
  std::int32_t width = 0;
};

// What a model's image processor makes of one image: resized, cut into tiles, rescaled and normalised. The order of patches, and what is
// computed twice for models of films, is the tower's affair.
struct Pixels {
  std::vector<PixelTile> tiles;  // in the order in which the tower reads them, at least one
  std::vector<float> values;     // of all tiles, one after the other
  std::int32_t grid_rows = 0;    // of the tiles that are parts of the image, row by row; 0: it is not cut
  std::int32_t grid_columns = 0;
  std::int32_t overview = -1;             // index of the tile that shows all of an image that is cut; -1: there is none
  std::int32_t original_height = 0;       // of the file's picture, upright
  std::int32_t original_width = 0;        // likewise
  std::int32_t vectors = 0;               // that the tower and its connector make of it
  std::array<std::uint64_t, 2> digest{};  // of all of the above
};

using SharedPixels = std::shared_ptr<const Pixels>;

}  // namespace braid
