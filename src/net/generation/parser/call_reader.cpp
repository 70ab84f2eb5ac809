#include "net/generation/parser/call_reader.h"

#include <algorithm>
#include <utility>

namespace braid::net {

bool CallReader::is_declared(const std::string& name) const {
  return std::find(syntax_.functions.begin(), syntax_.functions.end(), name) != syntax_.functions.end();
}

bool CallReader::begins_declared(std::string_view name) const {
  return std::any_of(syntax_.functions.begin(), syntax_.functions.end(), [name](const auto& one) { return one.starts_with(name); });
}

bool CallReader::begin(std::string name) {
  if (!is_declared(name)) return false;
  writer_.begin(std::move(name));
  begun_ = true;
  return true;
}

}  // namespace braid::net
