#include "net/wish/messages.h"

#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/wish/custom_tool.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_index;
using json::at_key;

// Of a content part.
Result<std::string_view> type_of(const Value& part, const std::string& path) {
  if (part.get_if<std::string>() != nullptr) return "text";
  if (part.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", part);
  const Value* type = part.find("type");
  if (type == nullptr || type->get_if<std::string>() == nullptr)
    return invalid_argument(fmt::format("'{}' has no 'type'", path), at_key(path, "type"));
  return std::string_view(*type->get_if<std::string>());
}

Result<std::string> text_of_part(const Value& part, std::string_view kind, const std::string& path) {
  if (const auto* plain = part.get_if<std::string>()) return *plain;
  if (kind != "text" && kind != "refusal" && kind != "input_text" && kind != "output_text")
    return invalid_argument(fmt::format("'{}' is a content part of type '{}', and only text and images are supported", path, kind), path);
  const std::string member = kind == "refusal" ? "refusal" : "text";
  const Value* text = part.find(member);
  if (text == nullptr) return invalid_argument(fmt::format("'{}' has no '{}'", path, member), at_key(path, member));
  return json::read_string(*text, at_key(path, member));
}

// Neighbouring texts become one; so does all of it where nothing is shown.
Result<Value> join_parts(ValueList& parts, Sight& sight, bool from_tool, const std::string& path) {
  constexpr std::string_view kUnseen = "(an image that cannot be shown here)";
  ValueList out;
  std::optional<std::string> joined;
  const auto end_text = [&] {
    if (joined) out.emplace_back(ValueDict{{"type", "text"}, {"text", std::move(*joined)}});
    joined.reset();
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part_path = at_index(path, i);
    const Result<std::string_view> type = type_of(parts[i], part_path);
    if (!type) return type.error();
    const bool shows = is_image_type(*type);
    if (shows && (sight.sees || !from_tool)) {
      const Result<void> taken = take_image(parts[i], sight.images, part_path);
      if (!taken) return taken.error();
      end_text();
      out.push_back(std::move(parts[i]));
      continue;
    }
    const Result<std::string> text = shows ? Result<std::string>(std::string(kUnseen)) : text_of_part(parts[i], *type, part_path);
    if (!text) return text.error();
    joined = joined ? *joined + '\n' + *text : *text;
  }
  if (out.empty()) return Value(std::move(joined).value_or(""));
  end_text();
  return Value(std::move(out));
}

Result<void> normalize_content(ValueDict& message, const Value& role, Sight& sight, const std::string& path) {
  const bool may_be_absent = role == Value("assistant");
  Value* content = find_member(message, "content");
  if (content == nullptr) {
    if (!may_be_absent) return invalid_argument(fmt::format("'{}' is missing", path), path);
    message.emplace_back("content", "");
    return {};
  }
  if (content->is_null() && may_be_absent) {
    *content = "";
    return {};
  }
  if (auto* parts = content->get_if<ValueList>()) {
    Result<Value> joined = join_parts(*parts, sight, role == Value("tool"), path);
    if (!joined) return joined.error();
    *content = std::move(*joined);
    return {};
  }
  if (content->get_if<std::string>() == nullptr) return json::wrong_type(path, "a string or an array of content parts", *content);
  return {};
}

// An answer that refused has its words there, and templates look at the content alone.
void show_refusal(ValueDict& message) {
  Value* content = find_member(message, "content");
  const Value* refusal = find_member(message, "refusal");
  const bool refused = refusal != nullptr && refusal->get_if<std::string>() != nullptr;
  if (refused && content != nullptr && *content == Value("")) *content = *refusal;
}

// The characters that stand before a value of JSON that is not the first; in strings they may be others.
bool begins_value(char c) { return c == ',' || c == '[' || c == '{'; }

// Templates print arguments with `tojson`; OpenAI sends them as a string that holds JSON. Text that is no object stays as it is, but
// none at all is a call without arguments. All of a conversation together may hold as many values as a body.
Result<void> open_arguments(ValueDict& function, std::int64_t& values_left, const std::string& path) {
  Value* arguments = find_member(function, "arguments");
  if (arguments == nullptr) arguments = &function.emplace_back("arguments", Value()).second;
  const auto* text = arguments->get_if<std::string>();
  if (arguments->is_null() || (text != nullptr && text->find_first_not_of(" \t\r\n") == std::string::npos)) *arguments = ValueDict{};
  text = arguments->get_if<std::string>();
  if (text == nullptr) return {};
  values_left -= std::ranges::count_if(*text, begins_value) + 1;
  if (values_left < 0)
    return invalid_argument(fmt::format("the arguments of all calls up to '{}' hold more than {} values", path, json::kMaxValues), path);
  std::string copy = *text;
  Result<Value> parsed = json::parse(copy);
  if (parsed && parsed->get_if<ValueDict>() != nullptr) *arguments = std::move(*parsed);
  return {};
}

// {"type":"custom","custom":{"name":…,"input":…}} becomes the call of the function that stands for the tool.
Result<void> normalize_custom(ValueDict& call, const std::string& path) {
  Value* custom = find_member(call, "custom");
  if (custom == nullptr || find_member(call, "function") != nullptr) return {};
  const std::string custom_path = at_key(path, "custom");
  auto* members = custom->get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(custom_path, "an object", *custom);
  Value* input = find_member(*members, "input");
  Result<std::string> text = input != nullptr ? json::read_string(*input, at_key(custom_path, "input")) : std::string();
  if (!text) return text.error();
  ValueDict function;
  if (const Value* name = find_member(*members, "name")) function.emplace_back("name", *name);
  function.emplace_back("arguments", arguments_of_input(std::move(*text)));
  std::erase_if(call, [](const auto& member) { return member.first == "custom" || member.first == "type"; });
  call.emplace_back("type", "function");
  call.emplace_back("function", std::move(function));
  return {};
}

Result<void> normalize_tool_calls(Value& calls, std::int64_t& values_left, const std::string& path) {
  auto* list = calls.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", calls);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string call_path = at_index(path, i);
    auto* call = (*list)[i].get_if<ValueDict>();
    if (call == nullptr) return json::wrong_type(call_path, "an object", (*list)[i]);
    const Result<void> custom = normalize_custom(*call, call_path);
    if (!custom) return custom;
    Value* function = find_member(*call, "function");
    const std::string function_path = at_key(call_path, "function");
    if (function == nullptr) return invalid_argument(fmt::format("'{}' is missing", function_path), function_path);
    auto* members = function->get_if<ValueDict>();
    if (members == nullptr) return json::wrong_type(function_path, "an object", *function);
    const Value* name = function->find("name");
    const std::string name_path = at_key(function_path, "name");
    if (name == nullptr) return invalid_argument(fmt::format("'{}' is missing", name_path), name_path);
    if (name->get_if<std::string>() == nullptr) return json::wrong_type(name_path, "a string", *name);
    const Result<void> opened = open_arguments(*members, values_left, at_key(function_path, "arguments"));
    if (!opened) return opened;
  }
  return {};
}

// Templates know the older of the two names under which an answer tells its thoughts.
void name_reasoning(ValueDict& message) {
  const Value* newer = find_member(message, "reasoning");
  if (newer == nullptr || newer->get_if<std::string>() == nullptr) return;
  Value text = *newer;
  Value* older = find_member(message, "reasoning_content");
  if (older == nullptr) {
    message.emplace_back("reasoning_content", std::move(text));
  } else if (older->is_null()) {
    *older = std::move(text);
  }
}

// Clients repeat an answer with all its members; templates ask whether "tool_calls" is there, and count them.
void drop_empty_members(ValueDict& message) {
  std::erase_if(message, [](const auto& member) {
    const auto* list = member.second.template get_if<ValueList>();
    return member.second.is_null() || (member.first == "tool_calls" && list != nullptr && list->empty());
  });
}

Result<void> normalize_message(Value& value, std::int64_t& argument_values_left, Sight& sight, const std::string& path) {
  auto* message = value.get_if<ValueDict>();
  if (message == nullptr) return json::wrong_type(path, "an object", value);
  const std::string role_path = at_key(path, "role");
  const Value* role = value.find("role");
  if (role == nullptr) return invalid_argument(fmt::format("'{}' is missing", role_path), role_path);
  if (role->get_if<std::string>() == nullptr) return json::wrong_type(role_path, "a string", *role);
  const bool assistant = *role == Value("assistant");
  if (Value* calls = find_member(*message, "tool_calls"); calls != nullptr && !calls->is_null()) {
    const Result<void> normal = normalize_tool_calls(*calls, argument_values_left, at_key(path, "tool_calls"));
    if (!normal) return normal.error();
  }
  Result<void> normal = normalize_content(*message, Value(*role), sight, at_key(path, "content"));
  if (!normal) return normal;
  if (assistant) {
    show_refusal(*message);
    name_reasoning(*message);
  }
  drop_empty_members(*message);
  return {};
}

bool take_mark(ValueDict& members) {
  const Value* mark = find_member(members, "cache_control");
  const bool is_marked = mark != nullptr && !mark->is_null();
  std::erase_if(members, [](const auto& member) { return member.first == "cache_control"; });
  return is_marked;
}

}  // namespace

std::vector<std::int32_t> take_marks(ValueList& messages) {
  constexpr std::size_t kMostMarks = 16;
  std::vector<std::int32_t> marks;
  for (std::size_t i = messages.size(); i-- > 0;) {
    auto* message = messages[i].get_if<ValueDict>();
    if (message == nullptr) continue;
    bool is_marked = take_mark(*message);
    Value* content = find_member(*message, "content");
    if (auto* parts = content != nullptr ? content->get_if<ValueList>() : nullptr)
      for (Value& part : *parts)
        if (auto* members = part.get_if<ValueDict>()) is_marked |= take_mark(*members);
    if (is_marked && marks.size() < kMostMarks) marks.push_back(static_cast<std::int32_t>(messages.size() - 1 - i));
  }
  return marks;
}

Result<void> normalize_messages(ValueList& messages, const MessagePath& path_of, Sight& sight) {
  std::int64_t argument_values_left = json::kMaxValues;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Result<void> normal = normalize_message(messages[i], argument_values_left, sight, path_of(i));
    if (!normal) return normal.error();
  }
  return {};
}

}  // namespace braid::net::wish
