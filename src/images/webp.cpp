#include "images/byte_reader.h"
#include "images/exif.h"
#include "images/formats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>
#include <webp/decode.h>
#include <webp/demux.h>

namespace braid::images {
namespace {

struct AnimationEnd {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

const std::uint8_t* bytes_of(std::string_view file) { return reinterpret_cast<const std::uint8_t*>(file.data()); }

// Of the chunks of the container, the one with EXIF data.
int orientation_of(std::string_view file) {
  const ByteReader bytes(file);
  for (std::size_t at = 12; bytes.holds(at, 8);) {
    const std::size_t size = bytes.word(at + 4);
    if (file.substr(at, 4) == "EXIF") return orientation_in(file.substr(at + 8, size));
    at += 8 + size + size % 2;
  }
  return 1;
}

// The first frame as the animation's canvas shows it.
Result<StoredPicture> read_first_frame(std::string_view file, StoredPicture out) {
  const WebPData data{bytes_of(file), file.size()};
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) return broken("WebP", "the library is of another version");
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const std::unique_ptr<WebPAnimDecoder, AnimationEnd> decoder(WebPAnimDecoderNew(&data, &options));
  WebPAnimInfo info;
  if (!decoder || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0) return broken("WebP", "its animation cannot be read");
  const auto expected = static_cast<std::uint32_t>(out.picture.width);
  if (info.canvas_width != expected || info.canvas_height != static_cast<std::uint32_t>(out.picture.height))
    return broken("WebP", "its sizes contradict each other");
  std::uint8_t* frame = nullptr;
  int time = 0;
  if (WebPAnimDecoderGetNext(decoder.get(), &frame, &time) == 0) return broken("WebP", "its first frame cannot be read");
  for (std::size_t i = 0; i < out.picture.values.size() / 3; ++i) std::copy_n(frame + i * 4, 3, out.picture.values.data() + i * 3);
  return out;
}

}  // namespace

Result<StoredPicture> read_webp(std::string_view file, const DecodeLimits& limits) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes_of(file), file.size(), &features) != VP8_STATUS_OK) return broken("WebP", "its header cannot be read");
  const Result<void> fits = check_size(features.height, features.width, limits);
  if (!fits) return fits.error();
  StoredPicture out{Picture::empty(features.height, features.width), orientation_of(file)};
  if (features.has_animation != 0) return read_first_frame(file, std::move(out));
  std::vector<std::uint8_t>& values = out.picture.values;
  if (WebPDecodeRGBInto(bytes_of(file), file.size(), values.data(), values.size(), features.width * 3) == nullptr)
    return broken("WebP", "its data are damaged or cut off");
  return out;
}

}  // namespace braid::images
