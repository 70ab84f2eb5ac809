#include "app/whole_file.h"

#include <array>
#include <fstream>

namespace braid::app {

// Not by iterators over the stream's buffer: they throw where read() sets a bit.
std::optional<std::string> read_whole_file(const std::string& path, std::size_t most) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::string bytes;
  std::array<char, 1 << 16> piece{};
  while (stream && bytes.size() <= most) {
    stream.read(piece.data(), piece.size());
    bytes.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return std::nullopt;
  return bytes;
}

}  // namespace braid::app
