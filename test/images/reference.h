// Pictures, and what transformers 5.17 (torchvision 0.26, Pillow 12.3) made of them: test/images/pictures and reference.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {

inline const std::filesystem::path kImages = std::filesystem::path(BRAID_SOURCE_DIR) / "test/images";

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string picture_file(std::string_view name) { return read_file(kImages / "pictures" / name); }

// The document stays as long as the program.
inline simdjson::dom::element reference() {
  static simdjson::dom::parser parser;
  static const simdjson::dom::element root = parser.load((kImages / "reference.json").string());
  return root;
}

inline std::vector<std::uint8_t> from_hex(std::string_view digits) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// Where the i-th of the samples lies among `count` values.
inline std::size_t sample_place(std::size_t i, std::size_t count) { return (i * 2654435761U + 12345U) % count; }

}  // namespace braid::test
