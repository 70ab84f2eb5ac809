// Typed reading of tokenizer.json: what is missing, or of another type than wanted, is told once, with its path.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text {

// A value of the document, valid as long as its parser. What cannot be read gives an empty value, and the first such fault is kept in
// `error`, which all nodes of a document share: a reader asks for it once, at its end.
class ConfigNode {
 public:
  ConfigNode(simdjson::dom::element value, std::string path, std::optional<Error>& error)
      : value_(value), path_(std::move(path)), error_(&error) {}

  const std::string& path() const { return path_; }
  void fail(ErrorCode code, const std::string& sentence) const;
  bool failed() const { return error_->has_value(); }

  // Absent and null are the same.
  std::optional<ConfigNode> find(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string fallback) const;
  bool flag_or(std::string_view name, bool fallback) const;
  std::uint64_t count(std::string_view name) const;
  std::uint64_t count_or(std::string_view name, std::uint64_t fallback) const;
  std::vector<ConfigNode> items(std::string_view name) const;  // of an array that must be there

  std::string as_text() const;
  std::uint64_t as_count() const;
  std::vector<ConfigNode> as_items() const;
  std::vector<std::pair<std::string_view, ConfigNode>> as_members() const;
  bool is_text() const { return value_.is_string(); }
  bool is_object() const { return value_.is_object(); }
  bool is_array() const { return value_.is_array(); }
  simdjson::dom::element value() const { return value_; }

  // For a component whose "type" this build does not know.
  void refuse_type(std::string_view found, std::string_view known) const;

 private:
  void missing(std::string_view name, std::string_view wanted) const;

  simdjson::dom::element value_;
  std::string path_;
  std::optional<Error>* error_;
};

}  // namespace braid::text
