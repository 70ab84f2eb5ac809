// A decoded image file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::images {

struct Size {
  std::int32_t height = 0;
  std::int32_t width = 0;

  std::int64_t area() const { return std::int64_t{height} * width; }
  bool operator==(const Size&) const = default;
};

struct Picture {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::vector<std::uint8_t> values;  // [height, width, 3]: R, G, B

  static Picture empty(std::int32_t height, std::int32_t width) {
    return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3)};
  }
  Size size() const { return {height, width}; }
  std::uint8_t* row(std::int32_t y) { return values.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * 3; }
  const std::uint8_t* row(std::int32_t y) const {
    return values.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * 3;
  }
};

}  // namespace braid::images
