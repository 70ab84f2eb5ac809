// What a model's image processor does, as data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace braid::images {

enum class Kernel : std::uint8_t { kNearest, kBilinear, kBicubic, kLanczos };

// One file each makes pixels of a picture.
enum class Method : std::uint8_t {
  kFixed,     // CLIP, SigLIP, LLaVA 1.5, Gemma 3: one tile of a fixed size, resized to it or by the short edge and cropped
  kAnyRes,    // LLaVA-NeXT and -OneVision: an overview, and tiles of the grid that fits best
  kSplit,     // Idefics3, SmolVLM: tiles of a fixed size, then an overview
  kInternVl,  // tiles of a fixed size by the ratio of the sides, then an overview
  kPixtral,   // the whole picture, its longest side bounded, in patches
  kQwenVl,    // the whole picture, its area bounded, in patches that are merged
  kLfm2Vl,    // tiles by the ratio of the sides and an overview, or the whole picture, in patches
};

struct Size {
  std::int32_t height = 0;
  std::int32_t width = 0;
  bool operator==(const Size&) const = default;
};

// Where a file says nothing, what the class of the processor says.
struct Recipe {
  Method method = Method::kFixed;
  Kernel kernel = Kernel::kBicubic;
  Size size;                       // of a tile
  std::int32_t shortest_edge = 0;  // kFixed: to which it is resized before it is cropped; 0: to `size`, whatever its ratio
  std::int32_t longest_edge = 0;   // kSplit, kPixtral: at most
  bool resizes = true;
  bool splits = true;  // into tiles, where the method can
  float rescale = 1.0F / 255.0F;
  std::array<float, 3> mean{};  // of the channels R, G, B; zeros and ones: they are not normalised
  std::array<float, 3> deviation{1, 1, 1};
  std::int32_t patch = 14;      // pixels a side
  std::int32_t merge = 1;       // patches a side that become one vector
  std::int64_t min_pixels = 0;  // kQwenVl: of the area
  std::int64_t max_pixels = 0;
  std::int32_t min_tiles = 1;  // kInternVl, kLfm2Vl
  std::int32_t max_tiles = 1;
  bool overview = true;           // besides tiles
  std::vector<Size> grids;        // kAnyRes: sizes in pixels to choose from
  std::int32_t tile_vectors = 0;  // of a tile of the fixed size
  std::string placeholder;        // what the template writes
  std::string vector_token;       // what stands for one vector
  std::string before, after;      // around the vectors of an image
};

}  // namespace braid::images
