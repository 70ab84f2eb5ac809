#include "images/processor.h"

#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <vector>

namespace braid::images {
namespace {

PictureRules::Channels channels(const Section& pictures, std::string_view name, const PictureRules::Channels& fallback) {
  const std::vector<double> given = pictures.numbers(name);
  PictureRules::Channels out = fallback;
  if (given.size() == out.size())
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = static_cast<float>(given[c]);
  return out;
}

}  // namespace

Result<PictureRules> PictureRules::read(const Section& pictures, const Defaults& defaults) {
  PictureRules rules;
  rules.kernel = defaults.kernel;
  if (const std::optional<double> number = pictures.number("resample")) {
    if (*number != 1 && *number != 2 && *number != 3)
      return Error{ErrorCode::kUnsupported, fmt::format("the model's images are to be resized in a way that is not known ({})", *number),
                   ""};
    rules.kernel = *number == 1 ? Kernel::kLanczos : *number == 2 ? Kernel::kBilinear : Kernel::kBicubic;
  }
  rules.resizes = pictures.flag("do_resize", true);
  const double factor = pictures.number("rescale_factor").value_or(1.0 / 255);
  const bool rescales = pictures.flag("do_rescale", true);
  const bool normalises = pictures.flag("do_normalize", defaults.normalises);
  const Channels mean = channels(pictures, "image_mean", defaults.mean);
  const Channels deviation = channels(pictures, "image_std", defaults.deviation);
  // The values stay as they are, and what normalises them is rescaled.
  const auto unit = static_cast<float>(rescales ? 1.0 / factor : 1.0);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t value = 0; value < 256; ++value) {
      const auto stored = static_cast<float>(value);
      rules.values[c][value] = normalises ? (stored - mean[c] * unit) / (deviation[c] * unit)
                               : rescales ? stored * static_cast<float>(factor)
                                          : stored;
    }
  return rules;
}

void add_tile(Pixels& pixels, const PictureRules& rules, const Picture& picture) { add_tile(pixels, rules, picture, 0, 0, picture.size()); }

void add_tile(Pixels& pixels, const PictureRules& rules, const Picture& picture, std::int32_t top, std::int32_t left, Size size) {
  pixels.tiles.push_back({size.height, size.width});
  const std::size_t begin = pixels.values.size();
  const auto plane = static_cast<std::size_t>(size.area());
  pixels.values.resize(begin + plane * 3);
  for (std::int32_t y = 0; y < size.height; ++y) {
    const std::uint8_t* from = picture.row(top + y) + std::ptrdiff_t{left} * 3;
    float* to = pixels.values.data() + begin + static_cast<std::size_t>(y) * static_cast<std::size_t>(size.width);
    for (std::int32_t x = 0; x < size.width; ++x, ++to)
      for (std::size_t c = 0; c < 3; ++c) to[c * plane] = rules.values[c][*from++];
  }
}

void add_tiles(Pixels& pixels, const PictureRules& rules, const Picture& picture, Size tile) {
  pixels.grid_rows = picture.height / tile.height;
  pixels.grid_columns = picture.width / tile.width;
  pixels.values.reserve(pixels.values.size() + picture.values.size());
  for (std::int32_t row = 0; row < pixels.grid_rows; ++row)
    for (std::int32_t column = 0; column < pixels.grid_columns; ++column)
      add_tile(pixels, rules, picture, row * tile.height, column * tile.width, tile);
}

std::string repeated(std::string_view text, std::int32_t count) {
  std::string out;
  out.reserve(text.size() * static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) out += text;
  return out;
}

double round_even(double value) { return std::nearbyint(value); }

}  // namespace braid::images
