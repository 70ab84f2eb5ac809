#include "registry/json.h"

#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <simdjson.h>
#include <utility>
#include <variant>

namespace braid::registry {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMaxDepth = 100;

Value to_value(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY: {
      ValueList list;
      const dom::array items = element.get_array().value_unsafe();
      for (const dom::element item : items) list.push_back(to_value(item));
      return list;
    }
    case dom::element_type::OBJECT: {
      ValueDict dict;
      const dom::object members = element.get_object().value_unsafe();
      for (const auto& [key, item] : members) dict.emplace_back(std::string(key), to_value(item));
      return dict;
    }
    case dom::element_type::INT64:
      return element.get_int64().value_unsafe();
    case dom::element_type::UINT64:
      return LongInteger{fmt::format("{}", element.get_uint64().value_unsafe())};
    case dom::element_type::DOUBLE:
      return element.get_double().value_unsafe();
    case dom::element_type::STRING:
      return std::string(element.get_string().value_unsafe());
    case dom::element_type::BOOL:
      return element.get_bool().value_unsafe();
    case dom::element_type::NULL_VALUE:
      break;
  }
  return {};
}

struct Writer {
  std::string& out;

  void operator()(std::nullptr_t) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { fmt::format_to(std::back_inserter(out), "{}", value); }
  void operator()(double value) const {
    if (std::isfinite(value))
      fmt::format_to(std::back_inserter(out), "{}", value);
    else
      out += "null";
  }
  void operator()(const std::string& value) const { append_json_string(out, value); }
  void operator()(const LongInteger& value) const { out += value.text; }
  void operator()(const ValueList& list) const {
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ',';
      std::visit(*this, list[i].storage());
    }
    out += ']';
  }
  void operator()(const ValueDict& dict) const {
    out += '{';
    for (std::size_t i = 0; i < dict.size(); ++i) {
      if (i > 0) out += ',';
      append_json_string(out, dict[i].first);
      out += ':';
      std::visit(*this, dict[i].second.storage());
    }
    out += '}';
  }
};

}  // namespace

Result<Value> parse_json(std::string_view text, std::string_view what) {
  dom::parser parser;
  dom::element root;
  auto failure = parser.allocate(text.size(), kMaxDepth);
  if (failure == simdjson::SUCCESS) failure = parser.parse(text.data(), text.size()).get(root);
  if (failure != simdjson::SUCCESS)
    return Error{ErrorCode::kBadFile, fmt::format("{} is not valid JSON: {}", what, error_message(failure)), ""};
  return to_value(root);
}

std::string to_json(const Value& value) {
  std::string out;
  std::visit(Writer{out}, value.storage());
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  out += '"';
}

std::string text_member(const Value& value, std::string_view name) {
  const Value* member = value.find(name);
  const auto* text = member != nullptr ? member->get_if<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

std::int64_t number_member(const Value& value, std::string_view name, std::int64_t fallback) {
  const Value* member = value.find(name);
  const auto* number = member != nullptr ? member->get_if<std::int64_t>() : nullptr;
  return number != nullptr ? *number : fallback;
}

}  // namespace braid::registry
