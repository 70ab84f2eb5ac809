#include "net/generation/parser/whole_object.h"

#include "net/generation/parser/json_scanner.h"

namespace braid::net {

std::string whole_object(const std::string& text) {
  JsonScanner scanner;
  JsonScanner before;  // the last member
  std::string out;
  std::size_t kept = 0;
  for (const char c : text) {
    if (c == '"' && scanner.before_member()) {
      before = scanner;
      kept = out.size();
    }
    if (scanner.feed(c, out) != JsonScanner::Status::kMore) break;
  }
  if (scanner.in_member_name()) {
    scanner = before;
    out.resize(kept);
  }
  scanner.close(out);
  return out;
}

}  // namespace braid::net
