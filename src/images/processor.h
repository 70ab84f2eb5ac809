// What turns a picture into what a model reads: one class for each kind of processor, each in a file of `processors/`.
#pragma once

#include "braid/image_reader.h"
#include "braid/pixels.h"
#include "braid/result.h"
#include "images/picture.h"
#include "images/resize.h"
#include "images/settings.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace braid::images {

// What stands for an image in a prompt.
struct Marks {
  std::string placeholder;  // what the chat template writes
  std::string vector;       // what stands for one vector
};

struct Prepared {
  Pixels pixels;  // without a digest
  std::string text;
};

// Immutable: any thread.
class Processor {
 public:
  virtual ~Processor() = default;
  virtual Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const = 0;
};

// What all processors have in common: how pictures are resized, and which float each of a channel's 256 values becomes.
struct PictureRules {
  using Channels = std::array<float, 3>;

  Kernel kernel = Kernel::kBicubic;
  bool resizes = true;
  std::array<std::array<float, 256>, 3> values{};

  struct Defaults {
    Kernel kernel = Kernel::kBicubic;
    Channels mean{};
    Channels deviation{};
    bool normalises = true;
  };
  // kUnsupported: a way of resizing that is not known.
  static Result<PictureRules> read(const Section& pictures, const Defaults& defaults);
};

inline constexpr PictureRules::Channels kClipMean = {0.48145466F, 0.4578275F, 0.40821073F};
inline constexpr PictureRules::Channels kClipDeviation = {0.26862954F, 0.26130258F, 0.27577711F};
inline constexpr PictureRules::Channels kImageNetMean = {0.485F, 0.456F, 0.406F};
inline constexpr PictureRules::Channels kImageNetDeviation = {0.229F, 0.224F, 0.225F};
inline constexpr PictureRules::Channels kHalf = {0.5F, 0.5F, 0.5F};

// Adds a tile of a picture's values: all of it, or the part of `size` at a place.
void add_tile(Pixels& pixels, const PictureRules& rules, const Picture& picture);
void add_tile(Pixels& pixels, const PictureRules& rules, const Picture& picture, std::int32_t top, std::int32_t left, Size size);
// Adds all tiles of a picture whose sides are multiples of theirs, row by row.
void add_tiles(Pixels& pixels, const PictureRules& rules, const Picture& picture, Size tile);

std::string repeated(std::string_view text, std::int32_t count);

// Python's round(): of two whole numbers that are equally near, the even one.
double round_even(double value);

}  // namespace braid::images
