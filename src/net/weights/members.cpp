#include "net/weights/members.h"

#include "net/json/fields.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::net::weights {

const Value* Members::find(std::string_view key) const {
  const Value* value = document_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

template <class T>
T Members::take(Result<T> read) {
  if (read) return std::move(*read);
  if (!error) error = read.error();
  return {};
}

std::string Members::text(std::string_view key, bool required) {
  const Value* value = find(key);
  if (value == nullptr) {
    if (required && !error) error = invalid_argument(fmt::format("'{}' is missing", key), std::string(key));
    return {};
  }
  return take(json::read_string(*value, std::string(key)));
}

bool Members::flag(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr || *value == Value("false")) return false;
  return *value == Value("true") || take(json::read_bool(*value, std::string(key)));
}

void Members::refuse_others(std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : *document_.get_if<ValueDict>())
    if (!error && std::ranges::find(known, key) == known.end()) error = invalid_argument(fmt::format("'{}' is not known here", key), key);
}

}  // namespace braid::net::weights
