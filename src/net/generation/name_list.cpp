#include "net/generation/name_list.h"

#include <set>

namespace braid::net {

std::string header_name(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && c != ',' && c != '%') {
      out += c;
    } else {
      out.append("%").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
    }
  }
  return out;
}

std::string sorted_name_list(const std::vector<std::string>& names) {
  return name_list(std::set<std::string_view>(names.begin(), names.end()));
}

}  // namespace braid::net
