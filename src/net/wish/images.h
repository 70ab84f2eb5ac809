// Images that a request shows, in the forms of all dialects.
#pragma once

#include "braid/image_reader.h"
#include "braid/result.h"
#include "braid/value.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net::wish {

struct ShownImage {
  std::string file;  // its bytes; empty while it is still to be fetched
  std::string url;   // by http or https, where it is still to be fetched from; else empty
  ImageDetail detail = ImageDetail::kAuto;
  std::string path;  // where it stands in its request
};

inline constexpr std::size_t kMostImages = 256;  // of a request

// A content part of any dialect's conversation that shows an image: `url` is a data: URL or one by http or https. `at` is where that stands
// in the request, for errors.
Value image_part(Value url, Value detail, std::string at);
// Likewise of what is base64 alone.
Value base64_image_part(Value data, std::string at);

// Whether a content part of this type shows an image: "image" as above, and OpenAI's "image_url" and "input_image".
bool is_image_type(std::string_view type);

// Adds what a part of such a type shows to `images`. The part becomes what templates look for, {"type": "image"}, with its "number" among
// them.
Result<void> take_image(Value& part, std::vector<ShownImage>& images, const std::string& path);

}  // namespace braid::net::wish
