#include "net/generation/parser/call_reader.h"

#include <algorithm>
#include <utility>

namespace braid::net {

bool CallReader::begin(std::string name) {
  if (std::find(syntax_.functions.begin(), syntax_.functions.end(), name) == syntax_.functions.end()) return false;
  writer_.begin(std::move(name));
  begun_ = true;
  return true;
}

}  // namespace braid::net
