#include "net/generation/parser/whole_object.h"

#include "net/generation/parser/json_scanner.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace braid::net {
namespace {

// A place that the text may be cut back to.
struct Place {
  JsonScanner scanner;
  std::size_t length = 0;
};

// Whether an escape stands for the first half of a character, whose second one is due.
bool is_first_half(std::string_view escape) {
  constexpr std::string_view kThird = "89abAB";
  return escape.size() == 6 && escape[1] == 'u' && (escape[2] == 'd' || escape[2] == 'D') &&
         kThird.find(escape[3]) != std::string_view::npos;
}

}  // namespace

std::string whole_object(const std::string& text) {
  JsonScanner scanner;
  std::string out;
  Place member;  // where the last one begins
  Place escape;  // where the last one begins, or the first of the two that are one character
  bool in_character = false;
  for (const char c : text) {
    if (c == '"' && scanner.before_member()) member = {scanner, out.size()};
    if (c == '\\' && !in_character) escape = {scanner, out.size()};
    if (scanner.feed(c, out) != JsonScanner::Status::kMore) break;
    in_character = scanner.in_escape() || is_first_half(std::string_view(out).substr(std::min(escape.length, out.size())));
  }
  if (in_character || scanner.in_member_name()) {
    const Place& end = scanner.in_member_name() ? member : escape;
    scanner = end.scanner;
    out.resize(end.length);
  }
  scanner.close(out);
  return out;
}

}  // namespace braid::net
