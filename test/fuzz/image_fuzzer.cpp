// Whatever a file holds, it is a picture of a size within the limits, or an error with a sentence.
#include "fuzz/require.h"
#include "images/decode.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  constexpr images::DecodeLimits kLimits{.pixels = 300'000, .side = 2'000};
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const Result<images::Picture> picture = images::decode(file, kLimits);
  if (!picture) {
    test::require(picture.error().code == ErrorCode::kInvalidArgument && !picture.error().message.empty());
    return 0;
  }
  test::require(picture->height >= 1 && picture->width >= 1 && picture->height <= kLimits.side && picture->width <= kLimits.side);
  test::require(picture->size().area() <= kLimits.pixels);
  test::require(picture->values.size() == static_cast<std::size_t>(picture->size().area()) * 3);
  return 0;
}
