// Objects of a small network's config.json, read member by member.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <optional>
#include <set>
#include <simdjson.h>
#include <string>
#include <string_view>

namespace braid::model {

// kBadFile, about what stands at `path`.
Error bad_config(std::string path, std::string_view what);

// Reads one object, whose document outlives it: what is not asked for is an error at the end.
class ConfigFields {
 public:
  static Result<ConfigFields> of(const simdjson::dom::element& value, std::string path);

  std::string path_of(std::string_view key) const { return path_.empty() ? std::string(key) : path_ + "." + std::string(key); }

  std::optional<simdjson::dom::element> find(std::string_view key);
  Result<simdjson::dom::element> need(std::string_view key);
  Result<std::string> text(std::string_view key, std::string_view otherwise);
  Result<bool> flag(std::string_view key);  // false where it is missing
  Result<std::int64_t> whole(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most);
  Result<void> end() const;

  const simdjson::dom::object& all() const { return fields_; }

 private:
  ConfigFields(simdjson::dom::object fields, std::string path) : fields_(fields), path_(std::move(path)) {}

  simdjson::dom::object fields_;
  std::string path_;
  std::set<std::string_view> read_;
};

}  // namespace braid::model
