#include "app/bench/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

namespace braid::bench {

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // as UTF-8
    if (byte < 0x20 || byte == 0x7F || is_c1) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", is_c1 ? next : byte);
      if (is_c1) ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace braid::bench
