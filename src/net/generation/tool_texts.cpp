#include "net/generation/tool_texts.h"

#include "net/json/write_value.h"

#include <string>
#include <string_view>
#include <utility>

namespace braid::net {
namespace {

constexpr std::string_view kBefore = "You may call these functions:\n";
constexpr std::string_view kAfter =
    "To call a function, answer with nothing but a JSON object of this form:\n"
    "{\"name\": \"the function's name\", \"arguments\": {…}}\n"
    "For several calls, answer with a JSON array of such objects. You will be told the results.";

std::string description_of(const ValueList& tools) {
  std::string text(kBefore);
  for (const Value& tool : tools) {
    const Value* function = tool.find("function");
    json::append_value(text, function != nullptr ? *function : tool);
    text += '\n';
  }
  return text.append(kAfter);
}

void add_to_system(ValueList& messages, std::string text) {
  const Value* role = messages.empty() ? nullptr : messages.front().find("role");
  auto* first = role != nullptr && *role == Value("system") ? messages.front().get_if<ValueDict>() : nullptr;
  Value* content = first != nullptr ? find_member(*first, "content") : nullptr;
  auto* before = content != nullptr ? content->get_if<std::string>() : nullptr;
  if (before != nullptr) {
    before->append(before->empty() ? "" : "\n\n").append(text);
  } else {
    messages.insert(messages.begin(), ValueDict{{"role", "system"}, {"content", std::move(text)}});
  }
}

// The calls of an assistant's message become its content.
void write_calls(ValueDict& message) {
  const Value* calls = find_member(message, "tool_calls");
  const auto* list = calls != nullptr ? calls->get_if<ValueList>() : nullptr;
  if (list == nullptr || list->empty()) return;
  ValueList written;
  for (const Value& call : *list) {
    const Value* function = call.find("function");
    const Value* name = function != nullptr ? function->find("name") : nullptr;
    const Value* arguments = function != nullptr ? function->find("arguments") : nullptr;
    written.push_back(
        ValueDict{{"name", name != nullptr ? *name : Value("")}, {"arguments", arguments != nullptr ? *arguments : Value(ValueDict{})}});
  }
  std::string text;
  json::append_value(text, written.size() == 1 ? written.front() : Value(std::move(written)));
  Value* content = find_member(message, "content");
  auto* before = content != nullptr ? content->get_if<std::string>() : nullptr;
  if (before != nullptr) before->append(before->empty() ? "" : "\n").append(text);
  std::erase_if(message, [](const auto& member) { return member.first == "tool_calls"; });
}

// A tool's message becomes one of the user.
void write_result(ValueDict& message) {
  constexpr const char* kResult = "Result of the call: ";
  Value* role = find_member(message, "role");
  Value* content = find_member(message, "content");
  if (role == nullptr || content == nullptr || *role != Value("tool")) return;
  if (auto* text = content->get_if<std::string>()) {
    *text = kResult + *text;
  } else if (auto* parts = content->get_if<ValueList>()) {
    parts->insert(parts->begin(), ValueDict{{"type", "text"}, {"text", kResult}});
  }
  *role = "user";
}

}  // namespace

void write_tools_as_text(ChatPrompt& prompt) {
  auto* messages = prompt.messages.get_if<ValueList>();
  if (messages == nullptr) return;
  for (Value& message : *messages) {
    auto* members = message.get_if<ValueDict>();
    if (members == nullptr) continue;
    write_calls(*members);
    write_result(*members);
  }
  const auto* tools = prompt.tools.get_if<ValueList>();
  if (tools != nullptr && !tools->empty()) add_to_system(*messages, description_of(*tools));
}

bool write_arguments_as_text(ChatPrompt& prompt) {
  bool written = false;
  auto* messages = prompt.messages.get_if<ValueList>();
  if (messages == nullptr) return false;
  for (Value& message : *messages) {
    auto* members = message.get_if<ValueDict>();
    Value* calls = members != nullptr ? find_member(*members, "tool_calls") : nullptr;
    auto* list = calls != nullptr ? calls->get_if<ValueList>() : nullptr;
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      auto* call = (*list)[i].get_if<ValueDict>();
      Value* function = call != nullptr ? find_member(*call, "function") : nullptr;
      auto* function_members = function != nullptr ? function->get_if<ValueDict>() : nullptr;
      Value* arguments = function_members != nullptr ? find_member(*function_members, "arguments") : nullptr;
      if (arguments == nullptr || arguments->get_if<ValueDict>() == nullptr) continue;
      std::string text;
      json::append_value(text, *arguments);
      *arguments = std::move(text);
      written = true;
    }
  }
  return written;
}

bool leave_out_empty_content(ChatPrompt& prompt) {
  bool left_out = false;
  auto* messages = prompt.messages.get_if<ValueList>();
  if (messages == nullptr) return false;
  for (Value& message : *messages) {
    auto* members = message.get_if<ValueDict>();
    Value* content = members != nullptr ? find_member(*members, "content") : nullptr;
    if (content == nullptr || *content != Value("") || find_member(*members, "tool_calls") == nullptr) continue;
    *content = Value();
    left_out = true;
  }
  return left_out;
}

}  // namespace braid::net
