#include "net/responses/input_items.h"

#include "net/json/fields.h"

#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace braid::net::responses {
namespace {

using json::at_index;
using json::at_key;

Result<std::string> member_text(const Value& item, std::string_view name, const std::string& path) {
  const Value* member = item.find(name);
  const std::string member_path = at_key(path, name);
  if (member == nullptr) return invalid_argument(fmt::format("'{}' is missing", member_path), member_path);
  return json::read_string(*member, member_path);
}

Result<std::string> part_text(const Value& part, const std::string& path) {
  if (part.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", part);
  const Result<std::string> type = member_text(part, "type", path);
  if (!type) return type.error();
  for (const std::string_view text_type : {"input_text", "output_text", "text", "summary_text", "reasoning_text"})
    if (*type == text_type) return member_text(part, "text", path);
  if (*type == "refusal") return member_text(part, "refusal", path);
  return invalid_argument(fmt::format("'{}' is of type '{}', and only text is supported", path, *type), path);
}

// A string, or the texts of a list of parts.
Result<std::string> content_text(const Value& content, const std::string& path) {
  if (const auto* text = content.get_if<std::string>()) return *text;
  const auto* parts = content.get_if<ValueList>();
  if (parts == nullptr) return json::wrong_type(path, "a string or an array of content parts", content);
  std::string joined;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    Result<std::string> text = part_text((*parts)[i], at_index(path, i));
    if (!text) return text;
    if (i > 0) joined += '\n';
    joined += *text;
  }
  return joined;
}

Value* member(Value& dict, std::string_view name) { return const_cast<Value*>(dict.find(name)); }

// The assistant's message that calls and reasoning belong to: the last one, or a new one.
Value& open_assistant(ValueList& messages) {
  if (messages.empty() || *messages.back().find("role") != Value("assistant"))
    messages.emplace_back(ValueDict{{"role", "assistant"}, {"content", ""}});
  return messages.back();
}

Result<void> append_message(ValueList& messages, const Value& item, const std::string& path) {
  Result<std::string> role = member_text(item, "role", path);
  if (!role) return role.error();
  constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
  if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end()) {
    const std::string role_path = at_key(path, "role");
    return invalid_argument(fmt::format("'{}' is '{}', not one of user, assistant, system, developer", role_path, *role), role_path);
  }
  const Value* content = item.find("content");
  const std::string content_path = at_key(path, "content");
  if (content == nullptr) return invalid_argument(fmt::format("'{}' is missing", content_path), content_path);
  Result<std::string> text = content_text(*content, content_path);
  if (!text) return text.error();
  // An answer follows its reasoning in the same message.
  if (*role == "assistant" && !messages.empty() && messages.back().find("reasoning_content") != nullptr &&
      *messages.back().find("content") == Value("") && messages.back().find("tool_calls") == nullptr) {
    *member(messages.back(), "content") = std::move(*text);
    return {};
  }
  messages.emplace_back(ValueDict{{"role", std::move(*role)}, {"content", std::move(*text)}});
  return {};
}

Result<void> append_call(ValueList& messages, const Value& item, const std::string& path) {
  Result<std::string> id = member_text(item, "call_id", path);
  if (!id) return id.error();
  Result<std::string> name = member_text(item, "name", path);
  if (!name) return name.error();
  Result<std::string> arguments = member_text(item, "arguments", path);
  if (!arguments) return arguments.error();
  Value& message = open_assistant(messages);
  if (message.find("tool_calls") == nullptr) message.get_if<ValueDict>()->emplace_back("tool_calls", ValueList());
  ValueDict function{{"name", std::move(*name)}, {"arguments", std::move(*arguments)}};
  member(message, "tool_calls")
      ->get_if<ValueList>()
      ->emplace_back(ValueDict{{"id", std::move(*id)}, {"type", "function"}, {"function", std::move(function)}});
  return {};
}

Result<void> append_output(ValueList& messages, const Value& item, const std::string& path) {
  Result<std::string> id = member_text(item, "call_id", path);
  if (!id) return id.error();
  const Value* output = item.find("output");
  const std::string output_path = at_key(path, "output");
  if (output == nullptr) return invalid_argument(fmt::format("'{}' is missing", output_path), output_path);
  Result<std::string> text = content_text(*output, output_path);
  if (!text) return text.error();
  messages.emplace_back(ValueDict{{"role", "tool"}, {"tool_call_id", std::move(*id)}, {"content", std::move(*text)}});
  return {};
}

// Its content, or else its summary.
Result<void> append_reasoning(ValueList& messages, const Value& item, const std::string& path) {
  for (const std::string_view name : {"content", "summary"}) {
    const Value* parts = item.find(name);
    if (parts == nullptr || parts->is_null()) continue;
    Result<std::string> text = content_text(*parts, at_key(path, name));
    if (!text) return text.error();
    if (text->empty()) continue;
    messages.emplace_back(ValueDict{{"role", "assistant"}, {"content", ""}, {"reasoning_content", std::move(*text)}});
    return {};
  }
  return {};
}

struct ItemKind {
  std::string_view type;
  Result<void> (*append)(ValueList& messages, const Value& item, const std::string& path);
};

constexpr std::array kKinds = {
    ItemKind{"message", append_message},
    ItemKind{"function_call", append_call},
    ItemKind{"function_call_output", append_output},
    ItemKind{"reasoning", append_reasoning},
};

Result<void> append_item(ValueList& messages, const Value& item, const std::string& path) {
  if (item.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", item);
  if (item.find("type") == nullptr) return append_message(messages, item, path);
  const Result<std::string> type = member_text(item, "type", path);
  if (!type) return type.error();
  for (const ItemKind& kind : kKinds)
    if (*type == kind.type) return kind.append(messages, item, path);
  return invalid_argument(fmt::format("'{}' is an item of type '{}', which is not supported", path, *type), at_key(path, "type"));
}

}  // namespace

Result<void> append_input(ValueList& messages, const Value& input, const std::string& path) {
  if (const auto* text = input.get_if<std::string>()) {
    messages.emplace_back(ValueDict{{"role", "user"}, {"content", *text}});
    return {};
  }
  const auto* items = input.get_if<ValueList>();
  if (items == nullptr) return json::wrong_type(path, "a string or an array of items", input);
  if (items->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  for (std::size_t i = 0; i < items->size(); ++i) {
    const Result<void> appended = append_item(messages, (*items)[i], at_index(path, i));
    if (!appended) return appended;
  }
  return {};
}

}  // namespace braid::net::responses
