#include "net/generation/parser/whole_object.h"

#include "net/generation/parser/json_scanner.h"

namespace braid::net {

std::string whole_object(const std::string& text) {
  JsonScanner scanner;
  std::string out;
  for (const char c : text)
    if (scanner.feed(c, out) != JsonScanner::Status::kMore) break;
  scanner.close(out);
  return out;
}

}  // namespace braid::net
