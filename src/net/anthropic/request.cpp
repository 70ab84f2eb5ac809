#include "net/anthropic/request.h"

#include "net/json/fields.h"
#include "net/openai/request.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::net::anthropic {
namespace {

using json::at_index;
using json::at_key;

struct Draft {
  ValueList messages;
  std::string system;
  ValueDict chat;  // the chat request in the making
  bool has_max_tokens = false;
  std::optional<bool> thinks;
};

using Reader = Result<void> (*)(Draft& draft, Value& value, const std::string& path);

Result<void> as_chat(Draft& draft, std::string_view name, Value value) {
  draft.chat.emplace_back(name, std::move(value));
  return {};
}

Result<void> read_messages(Draft& draft, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  if (list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<void> appended = append_message(draft.messages, (*list)[i], at_index(path, i));
    if (!appended) return appended;
  }
  // An answer that the client has begun is continued.
  if (*list->back().find("role") == Value("assistant")) {
    draft.chat.emplace_back("continue_final_message", true);
    draft.chat.emplace_back("add_generation_prompt", false);
  }
  return {};
}

Result<void> read_system(Draft& draft, Value& value, const std::string& path) {
  Result<std::string> text = block_text(value, path);
  if (!text) return text.error();
  draft.system = std::move(*text);
  return {};
}

Result<void> read_max_tokens(Draft& draft, Value& value, const std::string& path) {
  draft.has_max_tokens = true;
  const Result<std::int64_t> count = json::read_integer(value, path, 1);
  if (!count) return count.error();
  return as_chat(draft, "max_tokens", std::move(value));
}

Result<void> read_temperature(Draft& draft, Value& value, const std::string& path) {
  const Result<float> temperature = json::read_number(value, path, 0.0F, 1.0F);
  if (!temperature) return temperature.error();
  return as_chat(draft, "temperature", std::move(value));
}

Result<void> read_stop_sequences(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueList>() == nullptr) return json::wrong_type(path, "an array of strings", value);
  return as_chat(draft, "stop", std::move(value));
}

Result<void> read_tools(Draft& draft, Value& value, const std::string& path) {
  const auto* tools = value.get_if<ValueList>();
  if (tools == nullptr) return json::wrong_type(path, "an array", value);
  ValueList chat_tools;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Value& tool = (*tools)[i];
    const std::string tool_path = at_index(path, i);
    if (tool.get_if<ValueDict>() == nullptr) return json::wrong_type(tool_path, "an object", tool);
    const Value* type = tool.find("type");
    if (type != nullptr && !type->is_null() && *type != Value("custom"))
      return invalid_argument(fmt::format("'{}' is a tool of the provider's; only custom tools are supported", tool_path),
                              at_key(tool_path, "type"));
    ValueDict function;
    for (const auto& [own, chat] : {std::pair("name", "name"), std::pair("description", "description"),
                                    std::pair("input_schema", "parameters"), std::pair("strict", "strict")})
      if (const Value* member = tool.find(own)) function.emplace_back(chat, *member);
    chat_tools.emplace_back(ValueDict{{"type", "function"}, {"function", std::move(function)}});
  }
  return as_chat(draft, "tools", std::move(chat_tools));
}

Result<void> read_tool_choice(Draft& draft, Value& value, const std::string& path) {
  const Value* type = value.find("type");
  const std::string type_path = at_key(path, "type");
  if (type == nullptr) return invalid_argument(fmt::format("'{}' is missing", type_path), type_path);
  if (const Value* single = value.find("disable_parallel_tool_use"); single != nullptr && *single == Value(true))
    draft.chat.emplace_back("parallel_tool_calls", false);
  if (*type == Value("auto") || *type == Value("none")) return as_chat(draft, "tool_choice", *type);
  if (*type == Value("any")) return as_chat(draft, "tool_choice", "required");
  if (*type != Value("tool")) return invalid_argument(fmt::format("'{}' must be one of auto, any, tool, none", type_path), type_path);
  const std::string name_path = at_key(path, "name");
  const Value* name = value.find("name");
  if (name == nullptr) return invalid_argument(fmt::format("'{}' is missing", name_path), name_path);
  return as_chat(draft, "tool_choice", ValueDict{{"type", "function"}, {"function", ValueDict{{"name", *name}}}});
}

Result<void> read_thinking(Draft& draft, Value& value, const std::string& path) {
  const Value* type = value.find("type");
  if (type == nullptr || type->get_if<std::string>() == nullptr)
    return invalid_argument(fmt::format("'{}' has no 'type'", path), at_key(path, "type"));
  if (*type != Value("enabled") && *type != Value("adaptive") && *type != Value("disabled")) {
    const std::string type_path = at_key(path, "type");
    return invalid_argument(fmt::format("'{}' must be one of enabled, disabled, adaptive", type_path), type_path);
  }
  draft.thinks = *type != Value("disabled");
  if (const Value* budget = value.find("budget_tokens"); budget != nullptr && !budget->is_null()) {
    const Result<std::int64_t> tokens =
        json::read_integer(*budget, at_key(path, "budget_tokens"), 0, std::numeric_limits<std::int64_t>::max());
    if (!tokens) return tokens.error();
    draft.chat.emplace_back("thinking_budget", *tokens);
  }
  return {};
}

// The switches that the common families' templates know. A request's own chat_template_kwargs win.
void add_switches(ValueDict& chat, bool thinks) {
  Value* kwargs = find_member(chat, "chat_template_kwargs");
  if (kwargs == nullptr) kwargs = &chat.emplace_back("chat_template_kwargs", ValueDict{}).second;
  auto* members = kwargs->get_if<ValueDict>();
  if (members == nullptr) return;  // which the chat's reader refuses
  for (const char* name : {"enable_thinking", "thinking"})
    if (kwargs->find(name) == nullptr) members->emplace_back(name, thinks);
}

// {"type":"json_schema","schema":{…}}
Result<void> read_output_format(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const Value* type = value.find("type");
  const std::string type_path = at_key(path, "type");
  if (type == nullptr || *type != Value("json_schema"))
    return invalid_argument(fmt::format("'{}' must be 'json_schema'", type_path), type_path);
  ValueDict format;
  if (const Value* schema = value.find("schema")) format.emplace_back("schema", *schema);
  return as_chat(draft, "response_format", ValueDict{{"type", "json_schema"}, {"json_schema", std::move(format)}});
}

Result<void> read_output_config(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const Value* format = value.find("format");
  if (format == nullptr || format->is_null()) return {};
  Value own = *format;
  return read_output_format(draft, own, at_key(path, "format"));
}

// Fields that say nothing here; the form of those that are described is checked.
Result<void> accept_object(Draft&, Value& value, const std::string& path) {
  return value.get_if<ValueDict>() != nullptr ? Result<void>() : json::wrong_type(path, "an object", value);
}

Result<void> accept_string(Draft&, Value& value, const std::string& path) {
  const Result<std::string> text = json::read_string(value, path);
  return text ? Result<void>() : text.error();
}

Result<void> read_nothing(Draft&, Value&, const std::string&) { return {}; }

struct Parameter {
  std::string_view name;
  Reader read;
};

constexpr std::array kParameters = {
    Parameter{"messages", read_messages},
    Parameter{"system", read_system},
    Parameter{"max_tokens", read_max_tokens},
    Parameter{"temperature", read_temperature},
    Parameter{"stop_sequences", read_stop_sequences},
    Parameter{"tools", read_tools},
    Parameter{"tool_choice", read_tool_choice},
    Parameter{"thinking", read_thinking},
    Parameter{"output_config", read_output_config},
    Parameter{"output_format", read_output_format},  // the older name of output_config.format
    Parameter{"n",
              [](Draft&, Value&, const std::string& path) -> Result<void> {
                return invalid_argument(fmt::format("'{}' is not supported: a message is one answer", path), path);
              }},
    Parameter{"metadata", accept_object},
    Parameter{"service_tier", accept_string},
    Parameter{"container", read_nothing},
    Parameter{"betas", read_nothing},
};

Result<Draft> read_members(ValueDict& body) {
  Draft draft;
  for (auto& [name, value] : body) {
    if (value.is_null()) continue;
    const auto* known = std::find_if(kParameters.begin(), kParameters.end(), [&key = name](const Parameter& p) { return p.name == key; });
    const Result<void> read = known != kParameters.end() ? known->read(draft, value, name) : as_chat(draft, name, value);
    if (!read) return read.error();
  }
  return draft;
}

Result<GenerationCall> read(Value& body, const ServedModel& model, bool counting) {
  Result<Draft> draft = read_members(*body.get_if<ValueDict>());
  if (!draft) return draft.error();
  if (draft->messages.empty()) return invalid_argument("'messages' is missing", "messages");
  if (!draft->has_max_tokens && !counting) return invalid_argument("'max_tokens' is missing", "max_tokens");
  if (!draft->system.empty())
    draft->messages.insert(draft->messages.begin(), ValueDict{{"role", "system"}, {"content", std::move(draft->system)}});
  if (draft->thinks) add_switches(draft->chat, *draft->thinks);
  draft->chat.emplace_back("messages", std::move(draft->messages));
  Value chat(std::move(draft->chat));
  return openai::read_chat(chat, model);
}

}  // namespace

Result<GenerationCall> read_message(Value& body, const ServedModel& model) { return read(body, model, false); }
Result<GenerationCall> read_count(Value& body, const ServedModel& model) { return read(body, model, true); }

}  // namespace braid::net::anthropic
