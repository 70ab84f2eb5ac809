#include "net/responses/input_items.h"

#include "net/json/fields.h"
#include "net/json/write_value.h"
#include "net/responses/tools.h"
#include "net/wish/custom_tool.h"
#include "net/wish/images.h"
#include "net/wish/seal.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
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

bool is_image(const Value& part) {
  const Value* type = part.find("type");
  return type != nullptr && *type == Value("input_image");
}

Value image_of(const Value& part, const std::string& path) {
  const auto member_or_null = [&part](const char* name) { return part.find(name) != nullptr ? *part.find(name) : Value(); };
  if (part.find("image_url") == nullptr) return part;  // of a file, which is refused in the words of all dialects
  return wish::image_part(member_or_null("image_url"), member_or_null("detail"), at_key(path, "image_url"));
}

Value text_part(std::string text) { return ValueDict{{"type", "text"}, {"text", std::move(text)}}; }

// A string, or a list of parts: the texts, and images where they stand.
Result<Value> shown_content(const Value& content, const std::string& path);

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

Result<Value> shown_content(const Value& content, const std::string& path) {
  const auto* parts = content.get_if<ValueList>();
  if (parts == nullptr || std::ranges::none_of(*parts, is_image)) {
    Result<std::string> text = content_text(content, path);
    return text ? Result<Value>(std::move(*text)) : text.error();
  }
  ValueList shown;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const std::string place = at_index(path, i);
    if (is_image((*parts)[i])) {
      shown.push_back(image_of((*parts)[i], place));
      continue;
    }
    Result<std::string> text = part_text((*parts)[i], place);
    if (!text) return text.error();
    shown.push_back(text_part(std::move(*text)));
  }
  return Value(std::move(shown));
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
  Result<Value> text = shown_content(*content, content_path);
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

bool is_given(const Value& item, std::string_view name) {
  const Value* member = item.find(name);
  return member != nullptr && !member->is_null();
}

// Older items of some kinds have their id alone.
Result<std::string> call_id_of(const Value& item, const std::string& path) {
  return member_text(item, is_given(item, "call_id") || !is_given(item, "id") ? "call_id" : "id", path);
}

// The tool's name of a call item; the kinds that have a tool of their own name none.
Result<std::string> tool_of(const Value& item, const std::string& path) {
  const Value* name = item.find("name");
  if (name == nullptr) {
    std::string type = *item.find("type")->get_if<std::string>();
    if (type.ends_with("_call") && !type.starts_with("function") && !type.starts_with("custom") && !type.starts_with("mcp"))
      return type.substr(0, type.size() - 5);
  }
  Result<std::string> text = member_text(item, "name", path);
  if (!text) return text;
  for (const char* holder : {"namespace", "server_label"}) {
    const Value* space = item.find(holder);
    if (const auto* space_name = space != nullptr ? space->get_if<std::string>() : nullptr) return function_name(*space_name, *text);
  }
  return text;
}

void add_call(ValueList& messages, std::string id, std::string name, Value arguments) {
  Value& message = open_assistant(messages);
  if (message.find("tool_calls") == nullptr) message.get_if<ValueDict>()->emplace_back("tool_calls", ValueList());
  ValueDict function{{"name", std::move(name)}, {"arguments", std::move(arguments)}};
  member(message, "tool_calls")
      ->get_if<ValueList>()
      ->emplace_back(ValueDict{{"id", std::move(id)}, {"type", "function"}, {"function", std::move(function)}});
}

// Arguments are JSON text in a function's call, text in a custom tool's, and an object in those of a provider's that clients run.
Result<void> append_call(ValueList& messages, const Value& item, const std::string& path) {
  Result<std::string> id = call_id_of(item, path);
  if (!id) return id.error();
  Result<std::string> name = tool_of(item, path);
  if (!name) return name.error();
  for (const char* holder : {"action", "operation"}) {
    const Value* action = item.find(holder);
    if (action == nullptr || action->get_if<ValueDict>() == nullptr) continue;
    add_call(messages, std::move(*id), std::move(*name), *action);
    return {};
  }
  const bool is_custom = *item.find("type") == Value("custom_tool_call");
  Result<std::string> text = member_text(item, is_custom ? "input" : "arguments", path);
  if (!text) return text.error();
  add_call(messages, std::move(*id), std::move(*name), is_custom ? wish::arguments_of_input(std::move(*text)) : Value(std::move(*text)));
  return {};
}

// What a tool gave back; where that is neither text nor an image, the model is told so.
Result<Value> output_content(const Value& output, const std::string& path) {
  if (output.get_if<ValueDict>() != nullptr || output.is_null()) {
    std::string text;
    json::append_value(text, output);
    return Value(std::move(text));
  }
  const auto* parts = output.get_if<ValueList>();
  if (parts == nullptr) return shown_content(output, path);
  ValueList shown;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const Value& part = (*parts)[i];
    const Value* type = part.find("type");
    const auto* kind = type != nullptr ? type->get_if<std::string>() : nullptr;
    if (is_image(part)) {
      shown.push_back(part.find("image_url") != nullptr ? image_of(part, at_index(path, i))
                                                        : text_part("(an image that cannot be shown here)"));
    } else if (kind != nullptr && (*kind == "input_file" || *kind == "input_audio")) {
      shown.push_back(text_part("(a file that cannot be shown here)"));
    } else if (kind == nullptr && part.get_if<ValueDict>() != nullptr) {
      std::string text;
      json::append_value(text, part);  // of a shell: {"stdout":…,"stderr":…,"outcome":…}
      shown.push_back(text_part(std::move(text)));
    } else {
      Result<std::string> text = part_text(part, at_index(path, i));
      if (!text) return text.error();
      shown.push_back(text_part(std::move(*text)));
    }
  }
  return Value(std::move(shown));
}

Result<void> append_output(ValueList& messages, const Value& item, const std::string& path) {
  Result<std::string> id = call_id_of(item, path);
  if (!id) return id.error();
  const Value* output = item.find("output");
  const std::string output_path = at_key(path, "output");
  const Value* status = item.find("status");
  if (output == nullptr && status == nullptr) return invalid_argument(fmt::format("'{}' is missing", output_path), output_path);
  Result<Value> text = output_content(output != nullptr ? *output : *status, output_path);
  if (!text) return text.error();
  messages.emplace_back(ValueDict{{"role", "tool"}, {"tool_call_id", std::move(*id)}, {"content", std::move(*text)}});
  return {};
}

// A call that a provider ran, and what came of it. Its id says nothing to anybody else, and may be left out.
Result<void> append_run_call(ValueList& messages, const Value& written, const std::string& path) {
  const char* told = is_given(written, "output") ? "output" : "error";
  if (!is_given(written, told)) return {};  // it was not run
  Value item = written;
  if (!is_given(item, "call_id") && !is_given(item, "id")) {
    auto& members = *item.get_if<ValueDict>();
    std::erase_if(members, [](const auto& named) { return named.first == "call_id"; });
    members.emplace_back("call_id", fmt::format("call_{}", messages.size()));
  }
  const Result<void> called = append_call(messages, item, path);
  if (!called) return called;
  Result<Value> text = output_content(*item.find(told), at_key(path, told));
  if (!text) return text.error();
  messages.emplace_back(ValueDict{{"role", "tool"}, {"tool_call_id", *call_id_of(item, path)}, {"content", std::move(*text)}});
  return {};
}

// What this server made of the oldest turns of a conversation.
Result<void> append_summary(ValueList& messages, const Value& item, const std::string& path) {
  const Result<std::string> seal = member_text(item, "encrypted_content", path);
  if (!seal) return seal.error();
  const std::optional<std::string> summary = wish::opened(*seal);
  const std::string seal_path = at_key(path, "encrypted_content");
  if (!summary) return invalid_argument(fmt::format("'{}' was not made by this server, or is not whole", seal_path), seal_path);
  messages.emplace_back(ValueDict{{"role", "user"}, {"content", "This is a summary of our conversation so far:\n\n" + *summary}});
  return {};
}

// Its content, or else what of it was sealed here, or else its summary.
Result<void> append_reasoning(ValueList& messages, const Value& item, const std::string& path) {
  std::string thought;
  for (const std::string_view name : {"content", "encrypted_content", "summary"}) {
    const Value* parts = item.find(name);
    if (parts == nullptr || parts->is_null() || !thought.empty()) continue;
    Result<std::string> text = content_text(*parts, at_key(path, name));
    if (!text) return text.error();
    thought = name == "encrypted_content" ? wish::opened(*text).value_or("") : std::move(*text);
  }
  if (!thought.empty()) messages.emplace_back(ValueDict{{"role", "assistant"}, {"content", ""}, {"reasoning_content", std::move(thought)}});
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
    ItemKind{"custom_tool_call", append_call},
    ItemKind{"custom_tool_call_output", append_output},
    ItemKind{"local_shell_call", append_call},
    ItemKind{"local_shell_call_output", append_output},
    ItemKind{"shell_call", append_call},
    ItemKind{"shell_call_output", append_output},
    ItemKind{"apply_patch_call", append_call},
    ItemKind{"apply_patch_call_output", append_output},
    ItemKind{"mcp_call", append_run_call},
    ItemKind{"reasoning", append_reasoning},
    ItemKind{"compaction", append_summary},
    ItemKind{"compaction_summary", append_summary},
};

Result<void> append_item(ValueList& messages, const Value& item, const std::string& path, std::vector<std::string>& left_out) {
  if (item.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", item);
  if (item.find("type") == nullptr) return append_message(messages, item, path);
  const Result<std::string> type = member_text(item, "type", path);
  if (!type) return type.error();
  for (const ItemKind& kind : kKinds)
    if (*type == kind.type) return kind.append(messages, item, path);
  left_out.push_back(*type);
  return {};
}

}  // namespace

Result<void> append_input(ValueList& messages, const Value& input, const std::string& path, std::vector<std::string>& left_out) {
  if (const auto* text = input.get_if<std::string>()) {
    messages.emplace_back(ValueDict{{"role", "user"}, {"content", *text}});
    return {};
  }
  const auto* items = input.get_if<ValueList>();
  if (items == nullptr) return json::wrong_type(path, "a string or an array of items", input);
  if (items->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  for (std::size_t i = 0; i < items->size(); ++i) {
    const Result<void> appended = append_item(messages, (*items)[i], at_index(path, i), left_out);
    if (!appended) return appended;
  }
  return {};
}

}  // namespace braid::net::responses
