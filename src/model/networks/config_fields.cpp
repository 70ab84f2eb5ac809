#include "model/networks/config_fields.h"

#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

}  // namespace

Error bad_config(std::string path, std::string_view what) {
  return {ErrorCode::kBadFile, fmt::format("config.json: {}: {}", path, what), std::move(path)};
}

Result<ConfigFields> ConfigFields::of(const element& value, std::string path) {
  object fields;
  if (value.get(fields) != simdjson::SUCCESS) return bad_config(path, "expected an object");
  std::set<std::string_view> keys;
  for (const auto& [key, ignored] : fields)
    if (!keys.insert(key).second) return bad_config(path, fmt::format("'{}' stands twice", key));
  return ConfigFields(fields, std::move(path));
}

std::optional<element> ConfigFields::find(std::string_view key) {
  read_.insert(key);
  element value;
  if (fields_[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

Result<element> ConfigFields::need(std::string_view key) {
  if (const auto value = find(key)) return *value;
  return bad_config(path_of(key), "missing");
}

Result<std::string> ConfigFields::text(std::string_view key, std::string_view otherwise) {
  const auto value = find(key);
  if (!value) return std::string(otherwise);
  std::string_view text;
  if (value->get(text) != simdjson::SUCCESS) return bad_config(path_of(key), "expected a string");
  return std::string(text);
}

Result<bool> ConfigFields::flag(std::string_view key) {
  const auto value = find(key);
  bool flag = false;
  if (value && value->get(flag) != simdjson::SUCCESS) return bad_config(path_of(key), "expected true or false");
  return flag;
}

Result<std::int64_t> ConfigFields::whole(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  const auto value = find(key);
  if (!value) return otherwise;
  std::int64_t number = 0;
  if (value->get(number) != simdjson::SUCCESS || number < least || number > most)
    return bad_config(path_of(key), fmt::format("expected a whole number from {} to {}", least, most));
  return number;
}

Result<void> ConfigFields::end() const {
  for (const auto& [key, value] : fields_)
    if (!read_.contains(key)) return bad_config(path_of(key), "is not known here");
  return {};
}

}  // namespace braid::model
