#include "text/tokenizer/pipeline/config_node.h"

#include <fmt/format.h>

namespace braid::text {

void ConfigNode::fail(ErrorCode code, const std::string& sentence) const {
  if (!failed()) *error_ = Error{code, "tokenizer.json: " + sentence, {}};
}

void ConfigNode::missing(std::string_view name, std::string_view wanted) const {
  fail(ErrorCode::kBadFile, fmt::format("'{}{}{}' is not {}", path_, path_.empty() || name.empty() ? "" : ".", name, wanted));
}

void ConfigNode::refuse_type(std::string_view found, std::string_view known) const {
  fail(ErrorCode::kUnsupported, fmt::format("'{}' has the type '{}', expected one of {}", path_, found, known));
}

std::optional<ConfigNode> ConfigNode::find(std::string_view name) const {
  simdjson::dom::element member;
  if (!value_.is_object() || value_.at_key(name).get(member) != simdjson::SUCCESS || member.is_null()) return std::nullopt;
  return ConfigNode(member, fmt::format("{}{}{}", path_, path_.empty() ? "" : ".", name), *error_);
}

std::string ConfigNode::text(std::string_view name) const {
  const auto member = find(name);
  if (member) return member->as_text();
  missing(name, "there, expected a string");
  return {};
}

std::string ConfigNode::text_or(std::string_view name, std::string fallback) const {
  const auto member = find(name);
  return member ? member->as_text() : fallback;
}

bool ConfigNode::flag_or(std::string_view name, bool fallback) const {
  const auto member = find(name);
  if (!member) return fallback;
  bool flag = fallback;
  if (member->value_.get(flag) != simdjson::SUCCESS) member->missing("", "true or false");
  return flag;
}

std::uint64_t ConfigNode::count(std::string_view name) const {
  const auto member = find(name);
  if (member) return member->as_count();
  missing(name, "there, expected a number");
  return 0;
}

std::uint64_t ConfigNode::count_or(std::string_view name, std::uint64_t fallback) const {
  const auto member = find(name);
  return member ? member->as_count() : fallback;
}

std::vector<ConfigNode> ConfigNode::items(std::string_view name) const {
  const auto member = find(name);
  if (member) return member->as_items();
  missing(name, "there, expected an array");
  return {};
}

std::string ConfigNode::as_text() const {
  std::string_view text;
  if (value_.get(text) != simdjson::SUCCESS) missing("", "a string");
  return std::string(text);
}

std::uint64_t ConfigNode::as_count() const {
  std::uint64_t count = 0;
  if (value_.get(count) != simdjson::SUCCESS) missing("", "a whole number from 0 on");
  return count;
}

std::vector<ConfigNode> ConfigNode::as_items() const {
  std::vector<ConfigNode> items;
  simdjson::dom::array array;
  if (value_.get(array) != simdjson::SUCCESS) {
    missing("", "an array");
    return items;
  }
  for (const simdjson::dom::element item : array) items.emplace_back(item, fmt::format("{}[{}]", path_, items.size()), *error_);
  return items;
}

std::vector<std::pair<std::string_view, ConfigNode>> ConfigNode::as_members() const {
  std::vector<std::pair<std::string_view, ConfigNode>> members;
  simdjson::dom::object object;
  if (value_.get(object) != simdjson::SUCCESS) {
    missing("", "an object");
    return members;
  }
  for (const auto& [name, member] : object) members.emplace_back(name, ConfigNode(member, fmt::format("{}.{}", path_, name), *error_));
  return members;
}

}  // namespace braid::text
