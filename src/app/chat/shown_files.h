// Files of images that are named in what is typed.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

struct TypedText {
  std::string words;                // without the paths
  std::vector<std::string> images;  // paths, in their order
};

// Paths are words that end in .png, .jpg, .jpeg, .webp, .gif or .bmp and name a file: plain, with spaces behind backslashes, or in quotes, as
// terminals write what is dropped onto them. "~/" is the home folder.
TypedText find_images(std::string_view text);
bool begins_with_image(std::string_view text);

// A user's message, with what it shows in "images" as base64. kIo: a file cannot be read, or is larger than 20 MiB.
Result<Value> typed_message(const std::string& text);

}  // namespace braid::app
