#include "net/openai/request.h"

#include "net/http/error_response.h"
#include "net/json/fields.h"
#include "net/json/write_value.h"
#include "net/responses/input_items.h"
#include "net/responses/item_references.h"
#include "net/responses/request.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>

namespace braid::net::responses {
namespace {

using json::at_index;
using json::at_key;

// What is read of the body before the chat's reader sees the rest.
struct Draft {
  explicit Draft(const Shelf& shelf_of_client) : shelf(shelf_of_client) {}

  const Shelf& shelf;
  std::shared_ptr<ResponseDetails> details = std::make_shared<ResponseDetails>();
  std::string instructions;
  bool store = true;
  bool logprobs = false;
  ValueDict chat;  // the chat request in the making
};

using Reader = Result<void> (*)(Draft& draft, Value& value, const std::string& path);

Result<void> as_chat(Draft& draft, std::string_view name, Value value) {
  draft.chat.emplace_back(name, std::move(value));
  return {};
}

Result<void> read_instructions(Draft& draft, Value& value, const std::string& path) {
  Result<std::string> text = json::read_string(value, path);
  if (!text) return text.error();
  draft.instructions = std::move(*text);
  return {};
}

Result<void> read_previous(Draft& draft, Value& value, const std::string& path) {
  const Result<std::string> id = json::read_string(value, path);
  if (!id) return id.error();
  const auto previous = draft.shelf.find(*id);
  if (previous == nullptr)
    return Error{ErrorCode::kUnknownResponse, fmt::format("the response '{}' is unknown or no longer kept", *id), path};
  draft.details->conversation = previous->messages;
  return {};
}

Result<void> read_input(Draft& draft, Value& value, const std::string& path) {
  const Result<void> resolved = resolve_references(value, draft.shelf, path);
  if (!resolved) return resolved;
  const Result<void> appended = append_input(draft.details->conversation, value, path);
  if (!appended) return appended;
  if (auto* items = value.get_if<ValueList>()) {
    draft.details->input = std::move(*items);
  } else {
    ValueDict part{{"type", "input_text"}, {"text", std::move(value)}};
    draft.details->input.emplace_back(ValueDict{{"type", "message"}, {"role", "user"}, {"content", ValueList{Value(std::move(part))}}});
  }
  return {};
}

Result<void> read_max_output_tokens(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 1);
  if (!count) return count.error();
  return as_chat(draft, "max_completion_tokens", std::move(value));
}

Result<void> read_store(Draft& draft, Value& value, const std::string& path) {
  const Result<bool> store = json::read_bool(value, path);
  if (!store) return store.error();
  draft.store = *store;
  return {};
}

// {"type":"function","name":…} here is {"type":"function","function":{"name":…}} in chat.
Result<void> read_tools(Draft& draft, Value& value, const std::string& path) {
  const auto* tools = value.get_if<ValueList>();
  if (tools == nullptr) return json::wrong_type(path, "an array", value);
  ValueList chat_tools;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string tool_path = at_index(path, i);
    const auto* tool = (*tools)[i].get_if<ValueDict>();
    if (tool == nullptr) return json::wrong_type(tool_path, "an object", (*tools)[i]);
    const Value* type = (*tools)[i].find("type");
    if (type == nullptr || *type != Value("function"))
      return invalid_argument(fmt::format("'{}' is not a function; tools that run on the server are not supported", tool_path),
                              at_key(tool_path, "type"));
    ValueDict function;
    for (const auto& [name, member] : *tool)
      if (name != "type") function.emplace_back(name, member);
    chat_tools.emplace_back(ValueDict{{"type", "function"}, {"function", std::move(function)}});
  }
  return as_chat(draft, "tools", std::move(chat_tools));
}

// {"type":"function","name":…} of a tool here is {"type":"function","function":{"name":…}} there.
Value chat_tool(const Value& tool) {
  const Value* type = tool.find("type");
  const Value* name = tool.find("name");
  ValueDict function{{"name", name != nullptr ? *name : Value()}};
  return ValueDict{{"type", type != nullptr ? *type : Value()}, {"function", std::move(function)}};
}

Result<void> read_tool_choice(Draft& draft, Value& value, const std::string& path) {
  const Value* name = value.find("name");
  const Value* type = value.find("type");
  if (type != nullptr && *type == Value("allowed_tools")) {
    const Value* mode = value.find("mode");
    const Value* tools = value.find("tools");
    ValueList chosen;
    if (const auto* list = tools != nullptr ? tools->get_if<ValueList>() : nullptr)
      for (const Value& tool : *list) chosen.push_back(chat_tool(tool));
    ValueDict allowed{{"mode", mode != nullptr ? *mode : Value()}, {"tools", std::move(chosen)}};
    return as_chat(draft, "tool_choice", ValueDict{{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}});
  }
  if (value.get_if<ValueDict>() == nullptr) return as_chat(draft, "tool_choice", std::move(value));
  if (type == nullptr || *type != Value("function")) {
    const std::string type_path = at_key(path, "type");
    return invalid_argument(fmt::format("'{}' must be 'function' or 'allowed_tools'", type_path), type_path);
  }
  if (name == nullptr) return invalid_argument(fmt::format("'{0}.name' is missing", path), at_key(path, "name"));
  return as_chat(draft, "tool_choice", ValueDict{{"type", "function"}, {"function", ValueDict{{"name", *name}}}});
}

Result<void> read_text(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  if (const Value* verbosity = value.find("verbosity")) draft.chat.emplace_back("verbosity", *verbosity);
  const Value* format = value.find("format");
  if (format == nullptr || format->is_null()) return {};
  const Value* type = format->find("type");
  if (type == nullptr || *type != Value("json_schema")) return as_chat(draft, "response_format", *format);
  ValueDict schema;
  for (const auto& [name, member] : *format->get_if<ValueDict>())
    if (name != "type") schema.emplace_back(name, member);
  return as_chat(draft, "response_format", ValueDict{{"type", "json_schema"}, {"json_schema", std::move(schema)}});
}

Result<void> read_reasoning(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  if (const Value* summary = value.find("summary"); summary != nullptr && !summary->is_null() && summary->get_if<std::string>() == nullptr)
    return json::wrong_type(at_key(path, "summary"), "a string", *summary);
  const Value* effort = value.find("effort");
  if (effort == nullptr || effort->is_null()) return {};
  return as_chat(draft, "reasoning_effort", *effort);
}

Result<void> read_top_logprobs(Draft& draft, Value& value, const std::string&) {
  draft.logprobs = true;
  return as_chat(draft, "top_logprobs", std::move(value));
}

Result<void> read_include(Draft& draft, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<std::string> wanted = json::read_string((*list)[i], at_index(path, i));
    if (!wanted) return wanted.error();
    draft.logprobs = draft.logprobs || *wanted == "message.output_text.logprobs";  // the others name what is never there
  }
  return {};
}

Result<void> refuse(const std::string& path, std::string_view instead) {
  return invalid_argument(fmt::format("'{}' is not supported; {}", path, instead), path);
}

Result<void> read_background(Draft&, Value& value, const std::string& path) {
  const Result<bool> background = json::read_bool(value, path);
  if (!background) return background.error();
  return *background ? refuse(path, "the answer comes with its own request") : Result<void>();
}

Result<void> read_truncation(Draft&, Value& value, const std::string& path) {
  if (value == Value("disabled")) return {};
  return refuse(path, "only 'disabled' is: a conversation that does not fit is an error");
}

Result<void> read_conversation(Draft&, Value&, const std::string& path) { return refuse(path, "use 'previous_response_id'"); }
Result<void> read_prompt(Draft&, Value&, const std::string& path) { return refuse(path, "use 'instructions' and 'input'"); }

// Of tools that run on the server, and here there are none.
Result<void> accept_max_tool_calls(Draft&, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 0);
  return count ? Result<void>() : count.error();
}

// Obfuscation is all that these ask for.
Result<void> accept_stream_options(Draft&, Value& value, const std::string& path) {
  return value.get_if<ValueDict>() != nullptr ? Result<void>() : json::wrong_type(path, "an object", value);
}

struct Parameter {
  std::string_view name;
  Reader read;
};

// Everything else goes to the chat's reader under its own name.
constexpr std::array kParameters = {
    Parameter{"input", read_input},
    Parameter{"instructions", read_instructions},
    Parameter{"previous_response_id", read_previous},
    Parameter{"max_output_tokens", read_max_output_tokens},
    Parameter{"store", read_store},
    Parameter{"tools", read_tools},
    Parameter{"tool_choice", read_tool_choice},
    Parameter{"text", read_text},
    Parameter{"reasoning", read_reasoning},
    Parameter{"top_logprobs", read_top_logprobs},
    Parameter{"include", read_include},
    Parameter{"background", read_background},
    Parameter{"truncation", read_truncation},
    Parameter{"conversation", read_conversation},
    Parameter{"prompt", read_prompt},
    Parameter{"stream_options", accept_stream_options},
    Parameter{"max_tool_calls", accept_max_tool_calls},
    Parameter{"messages", [](Draft&, Value&, const std::string& path) { return refuse(path, "use 'input'"); }},
    Parameter{"n", [](Draft&, Value&, const std::string& path) { return refuse(path, "a response is one answer"); }},
};

Result<void> read_members(Draft& draft, ValueDict& body) {
  // Calls at the beginning of the input join the last message of what came before it, which so has to be known.
  std::stable_partition(body.begin(), body.end(), [](const auto& member) { return member.first == "previous_response_id"; });
  for (auto& [name, value] : body) {
    if (value.is_null()) continue;
    const auto* known = std::find_if(kParameters.begin(), kParameters.end(), [&key = name](const Parameter& p) { return p.name == key; });
    const Result<void> read = known != kParameters.end() ? known->read(draft, value, name) : as_chat(draft, name, value);
    if (!read) return read;
  }
  return {};
}

// What the request leaves to the server is echoed as it was decided: the tier that "auto" becomes, and text in no other format.
void append_echo(std::string& echo, std::string_view name, const Value& value) {
  if (name == "service_tier" && value == Value("auto")) return json::append_value(echo, Value("default"));
  const auto* members = name == "text" ? value.get_if<ValueDict>() : nullptr;
  const Value* format = value.find("format");
  if (members == nullptr || (format != nullptr && !format->is_null())) return json::append_value(echo, value);
  ValueDict text{{"format", ValueDict{{"type", "text"}}}};
  std::ranges::copy_if(*members, std::back_inserter(text), [](const auto& member) { return member.first != "format"; });
  json::append_value(echo, Value(std::move(text)));
}

// The members of the response object that repeat the request, each with what stands there when the request is silent.
std::string echo_of(const Value& body) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kEchoed = {{
      {"instructions", "null"},
      {"max_output_tokens", "null"},
      {"max_tool_calls", "null"},
      {"metadata", "{}"},
      {"parallel_tool_calls", "true"},
      {"previous_response_id", "null"},
      {"reasoning", R"({"effort":null,"summary":null})"},
      {"service_tier", R"("default")"},
      {"temperature", "1"},
      {"text", R"({"format":{"type":"text"}})"},
      {"tool_choice", R"("auto")"},
      {"tools", "[]"},
      {"top_p", "1"},
      {"truncation", R"("disabled")"},
      {"user", "null"},
  }};
  std::string echo = R"(,"background":false)";
  for (const auto& [name, silent] : kEchoed) {
    echo.append(",\"").append(name).append("\":");
    const Value* value = body.find(name);
    if (value == nullptr || value->is_null()) {
      echo += silent;
    } else {
      append_echo(echo, name, *value);
    }
  }
  const Value* store = body.find("store");
  echo += store != nullptr && *store == Value(false) ? R"(,"store":false)" : R"(,"store":true)";
  return echo;
}

using Renaming = std::pair<std::string_view, std::string_view>;

constexpr std::array<Renaming, 6> kOwnNames = {{
    {"verbosity", "text.verbosity"},
    {"max_completion_tokens", "max_output_tokens"},
    {"response_format.json_schema", "text.format"},
    {"response_format", "text.format"},
    {"reasoning_effort", "reasoning.effort"},
    {"messages", "input"},
}};

// The path of a field of the chat request as the path that it has here.
std::string own_path(std::string path) {
  for (const auto& [chat, own] : kOwnNames)
    if (path.starts_with(chat)) return path.replace(0, chat.size(), own);
  if (path.starts_with("tools[") || path.starts_with("tool_choice."))
    for (const std::string_view level : {".allowed_tools", ".function"})  // which these have not
      if (const std::size_t at = path.find(level); at != std::string::npos) path.erase(at, level.size());
  return path;
}

void replace_first(std::string& text, std::string_view old, std::string_view with) {
  if (const std::size_t at = text.find(old); !old.empty() && at != std::string::npos) text.replace(at, old.size(), with);
}

// Names of the chat request in an error become those of this dialect.
Error in_own_terms(Error error) {
  std::string param = own_path(error.param);
  replace_first(error.message, error.param, param);
  replace_first(error.message, "'response_format.json_schema", "'text.format");  // of two fields that exclude each other
  replace_first(error.message, "'response_format", "'text.format");
  error.param = std::move(param);
  return error;
}

}  // namespace

http::Response error_response(const Error& error) { return http::error_response(in_own_terms(error)); }

Result<GenerationCall> read_response(Value& body, const ServedModel& model, const Shelf& shelf) {
  Draft draft(shelf);
  draft.details->echo = echo_of(body);
  const Result<void> read = read_members(draft, *body.get_if<ValueDict>());
  if (!read) return read.error();
  if (draft.details->input.empty()) return invalid_argument("'input' is missing", "input");
  if (draft.store) draft.details->shelf = shelf;
  ValueList messages = draft.details->conversation;
  if (!draft.instructions.empty())
    messages.insert(messages.begin(), ValueDict{{"role", "system"}, {"content", std::move(draft.instructions)}});
  draft.chat.emplace_back("messages", std::move(messages));
  if (draft.logprobs) draft.chat.emplace_back("logprobs", true);
  Value chat(std::move(draft.chat));
  Result<GenerationCall> call = openai::read_chat(chat, model);
  if (!call) return call.error();
  call->prompt_field = "input";
  call->scores_text_only = true;
  call->details = std::move(draft.details);
  return call;
}

}  // namespace braid::net::responses
