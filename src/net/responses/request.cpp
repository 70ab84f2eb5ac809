#include "net/responses/request.h"

#include "net/json/fields.h"
#include "net/json/write_value.h"
#include "net/responses/input_items.h"
#include "net/responses/item_references.h"
#include "net/wish/finish.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

namespace braid::net::responses {
namespace {

using json::at_index;
using json::at_key;
using wish::BodyFields;

// What is read of the body: its own form of a conversation, and what every chat has.
struct ResponseFields {
  ResponseFields(const ServedModel& model, const Shelf& shelf) : chat(model), details(std::make_shared<ResponseDetails>(shelf)) {}

  BodyFields chat;
  std::shared_ptr<ResponseDetails> details;
  std::size_t recalled = 0;  // messages of the conversation that were there before the input
  std::string instructions;
};

using Reader = Result<void> (*)(ResponseFields& fields, Value& value, const std::string& path);

Result<void> read_instructions(ResponseFields& fields, Value& value, const std::string& path) {
  Result<std::string> text = json::read_string(value, path);
  if (!text) return text.error();
  fields.instructions = std::move(*text);
  return {};
}

Result<void> read_previous(ResponseFields& fields, Value& value, const std::string& path) {
  const Result<std::string> id = json::read_string(value, path);
  if (!id) return id.error();
  const auto previous = fields.details->shelf.find(*id);
  if (previous == nullptr)
    return Error{ErrorCode::kUnknownResponse, fmt::format("the response '{}' is unknown or no longer kept", *id), path};
  fields.details->conversation = previous->messages;
  fields.recalled = previous->messages.size();
  return {};
}

Result<void> read_input(ResponseFields& fields, Value& value, const std::string& path) {
  const Result<void> resolved = resolve_references(value, fields.details->shelf, path);
  if (!resolved) return resolved;
  const Result<void> appended = append_input(fields.details->conversation, value, path, fields.chat.wish.items_left_out);
  if (!appended) return appended;
  if (auto* items = value.get_if<ValueList>()) {
    fields.details->input = std::move(*items);
  } else {
    ValueDict part{{"type", "input_text"}, {"text", std::move(value)}};
    fields.details->input.emplace_back(ValueDict{{"type", "message"}, {"role", "user"}, {"content", ValueList{Value(std::move(part))}}});
  }
  return {};
}

Result<void> read_max_output_tokens(ResponseFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 1);
  if (!count) return count.error();
  fields.chat.wish.max_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*count, std::numeric_limits<std::int32_t>::max()));
  return {};
}

Result<void> read_store(ResponseFields& fields, Value& value, const std::string& path) {
  const Result<bool> store = json::read_bool(value, path);
  if (!store) return store.error();
  fields.details->is_to_be_kept = *store;
  return {};
}

Result<void> read_tools(ResponseFields& fields, Value& value, const std::string& path) {
  return responses::read_tools(fields.chat, fields.details->tools, value, path);
}

Result<void> read_tool_choice(ResponseFields& fields, Value& value, const std::string& path) {
  return responses::read_tool_choice(fields.chat, value, path);
}

Result<void> read_text(ResponseFields& fields, Value& value, const std::string& path) {
  auto* members = value.get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(path, "an object", value);
  if (Value* verbosity = find_member(*members, "verbosity"); verbosity != nullptr && !verbosity->is_null()) {
    const Result<void> read = wish::read_parameter(fields.chat, "verbosity", *verbosity, at_key(path, "verbosity"), wish::chat_tables());
    if (!read) return read;
  }
  Value* format = find_member(*members, "format");
  if (format == nullptr || format->is_null()) return {};
  const Value* type = format->find("type");
  const std::string format_path = at_key(path, "format");
  if (type == nullptr || *type != Value("json_schema")) return wish::read_response_format(fields.chat, *format, format_path);
  return wish::read_named_schema(fields.chat, *format, format_path);
}

Result<void> read_reasoning(ResponseFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  if (const Value* summary = value.find("summary"); summary != nullptr && !summary->is_null() && summary->get_if<std::string>() == nullptr)
    return json::wrong_type(at_key(path, "summary"), "a string", *summary);
  Value* effort = find_member(*value.get_if<ValueDict>(), "effort");
  if (effort == nullptr || effort->is_null()) return {};
  return wish::read_reasoning_effort(fields.chat, *effort, at_key(path, "effort"));
}

Result<void> read_top_logprobs(ResponseFields& fields, Value& value, const std::string& path) {
  fields.chat.logprobs = true;
  return wish::read_top_logprobs(fields.chat, value, path);
}

Result<void> read_include(ResponseFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<std::string> wanted = json::read_string((*list)[i], at_index(path, i));
    if (!wanted) return wanted.error();
    fields.chat.logprobs = fields.chat.logprobs || *wanted == "message.output_text.logprobs";
    fields.details->sealed_reasoning = fields.details->sealed_reasoning || *wanted == "reasoning.encrypted_content";
  }  // the others name what is never there
  return {};
}

Result<void> refuse(const std::string& path, std::string_view instead) {
  return invalid_argument(fmt::format("'{}' is not supported; {}", path, instead), path);
}

Result<void> read_background(ResponseFields&, Value& value, const std::string& path) {
  const Result<bool> background = json::read_bool(value, path);
  if (!background) return background.error();
  return *background ? refuse(path, "the answer comes with its own request") : Result<void>();
}

Result<void> read_truncation(ResponseFields& fields, Value& value, const std::string& path) {
  fields.chat.wish.drops_oldest_turns = value == Value("auto");
  if (fields.chat.wish.drops_oldest_turns || value == Value("disabled")) return {};
  return invalid_argument(fmt::format("'{}' must be 'auto' or 'disabled'", path), path);
}

Result<void> read_conversation(ResponseFields&, Value&, const std::string& path) { return refuse(path, "use 'previous_response_id'"); }
Result<void> read_prompt(ResponseFields&, Value&, const std::string& path) { return refuse(path, "use 'instructions' and 'input'"); }

// Of tools that run on the server, and here there are none.
Result<void> accept_max_tool_calls(ResponseFields&, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 0);
  return count ? Result<void>() : count.error();
}

// Obfuscation is all that these ask for.
Result<void> accept_stream_options(ResponseFields&, Value& value, const std::string& path) {
  return value.get_if<ValueDict>() != nullptr ? Result<void>() : json::wrong_type(path, "an object", value);
}

struct OwnParameter {
  std::string_view name;
  Reader read;
};

// Everything else is read as in every chat.
constexpr std::array kOwn = {
    OwnParameter{"input", read_input},
    OwnParameter{"instructions", read_instructions},
    OwnParameter{"previous_response_id", read_previous},
    OwnParameter{"max_output_tokens", read_max_output_tokens},
    OwnParameter{"store", read_store},
    OwnParameter{"tools", read_tools},
    OwnParameter{"tool_choice", read_tool_choice},
    OwnParameter{"text", read_text},
    OwnParameter{"reasoning", read_reasoning},
    OwnParameter{"top_logprobs", read_top_logprobs},
    OwnParameter{"include", read_include},
    OwnParameter{"background", read_background},
    OwnParameter{"truncation", read_truncation},
    OwnParameter{"conversation", read_conversation},
    OwnParameter{"prompt", read_prompt},
    OwnParameter{"stream_options", accept_stream_options},
    OwnParameter{"max_tool_calls", accept_max_tool_calls},
    OwnParameter{"messages", [](ResponseFields&, Value&, const std::string& path) { return refuse(path, "use 'input'"); }},
    OwnParameter{"n", [](ResponseFields&, Value&, const std::string& path) { return refuse(path, "a response is one answer"); }},
    OwnParameter{"n_cmpl", [](ResponseFields&, Value&, const std::string& path) { return refuse(path, "a response is one answer"); }},
};

Result<void> read_members(ResponseFields& fields, ValueDict& body) {
  // Calls at the beginning of the input join the last message of what came before it, which so has to be known.
  std::stable_partition(body.begin(), body.end(), [](const auto& member) { return member.first == "previous_response_id"; });
  for (auto& [name, value] : body) {
    if (value.is_null()) continue;
    const auto* known = std::find_if(kOwn.begin(), kOwn.end(), [&key = name](const OwnParameter& p) { return p.name == key; });
    const Result<void> read = known != kOwn.end() ? known->read(fields, value, name)
                                                  : wish::read_parameter(fields.chat, name, value, name, wish::foreign_tables());
    if (!read) return read;
  }
  return {};
}

// What the request leaves to the server is echoed as it was decided: the tier that "auto" becomes, and text in no other format.
void append_echo(std::string& echo, std::string_view name, const Value& value) {
  if (name == "service_tier" && value == Value("auto")) return json::append_value(echo, Value("default"));
  if (name == "tools") return json::append_value(echo, echoed_tools(value));
  const auto* members = name == "text" ? value.get_if<ValueDict>() : nullptr;
  const Value* format = value.find("format");
  if (members == nullptr || (format != nullptr && !format->is_null())) return json::append_value(echo, value);
  ValueDict text{{"format", ValueDict{{"type", "text"}}}};
  std::ranges::copy_if(*members, std::back_inserter(text), [](const auto& member) { return member.first != "format"; });
  json::append_value(echo, Value(std::move(text)));
}

// The members of the response object that repeat the request, each with what stands there when the request is silent.
std::string echo_of(const Value& body, const Wish& silent_wish) {
  const std::string temperature = fmt::to_string(silent_wish.sampling.temperature);
  const std::string top_p = fmt::to_string(silent_wish.sampling.top_p);
  const std::string most = silent_wish.max_tokens ? fmt::to_string(*silent_wish.max_tokens) : "null";
  const std::array<std::pair<std::string_view, std::string_view>, 20> echoed = {{
      {"frequency_penalty", "0"},
      {"instructions", "null"},
      {"max_output_tokens", most},
      {"max_tool_calls", "null"},
      {"metadata", "{}"},
      {"parallel_tool_calls", "true"},
      {"presence_penalty", "0"},
      {"previous_response_id", "null"},
      {"prompt_cache_key", "null"},
      {"reasoning", R"({"effort":null,"summary":null})"},
      {"safety_identifier", "null"},
      {"service_tier", R"("default")"},
      {"temperature", temperature},
      {"text", R"({"format":{"type":"text"}})"},
      {"tool_choice", R"("auto")"},
      {"tools", "[]"},
      {"top_logprobs", "0"},
      {"top_p", top_p},
      {"truncation", R"("disabled")"},
      {"user", "null"},
  }};
  std::string echo = R"(,"background":false)";
  for (const auto& [name, silent] : echoed) {
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

}  // namespace

Result<Wish> read_response(Value& body, const ServedModel& model, const Shelf& shelf) {
  ResponseFields fields(model, shelf);
  fields.details->echo = echo_of(body, fields.chat.wish);
  const Result<void> read = read_members(fields, *body.get_if<ValueDict>());
  if (!read) return read.error();
  resolve_choice(fields.chat.tool_choice, fields.details->tools);
  if (fields.details->input.empty() && fields.chat.wish.prompt_ids.empty()) return invalid_argument("'input' is missing", "input");
  ValueList messages = fields.details->conversation;
  if (messages.empty() && !fields.chat.wish.prompt_ids.empty()) messages = wish::unread_messages();
  const bool has_instructions = !fields.instructions.empty();
  if (has_instructions) messages.insert(messages.begin(), ValueDict{{"role", "system"}, {"content", std::move(fields.instructions)}});
  const auto path_of = [first = has_instructions ? 1U : 0U, recalled = fields.recalled](std::size_t index) -> std::string {
    if (index < first) return "instructions";
    return index - first < recalled ? "previous_response_id" : "input";
  };
  const std::shared_ptr<ResponseDetails> details = fields.details;
  Result<Wish> wish = wish::finish_chat(std::move(fields.chat), std::move(messages), path_of, "input");
  if (!wish) return wish;
  wish->scores_text_only = true;
  wish->details = details;
  return wish;
}

}  // namespace braid::net::responses
