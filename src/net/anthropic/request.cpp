#include "net/anthropic/request.h"

#include "net/anthropic/tools.h"
#include "net/generation/call.h"
#include "net/generation/prompts.h"
#include "net/json/fields.h"
#include "net/wish/finish.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::anthropic {
namespace {

using json::at_index;
using json::at_key;
using wish::BodyFields;

// What is read of the body: its own form of a conversation, and what every chat has.
struct MessageFields {
  explicit MessageFields(const ServedModel& model) : chat(model) {}

  BodyFields chat;
  ValueList messages;                // as chat has them
  std::vector<std::size_t> sources;  // [messages]: the index in the body of the message that each is of
  std::string system;
  bool system_marked = false;  // that, or a tool, is where the client wants its prompt cached
  Gleaned gleaned;
  Value tools;         // as in the body
  std::string effort;  // how much is to be thought, if at all
  bool hides_thinking = false;
  std::optional<std::vector<ContextEdit>> edits;
};

using Reader = Result<void> (*)(MessageFields& fields, Value& value, const std::string& path);

Result<void> read_messages(MessageFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  if (list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<void> appended = append_message(fields.messages, (*list)[i], at_index(path, i), fields.gleaned);
    if (!appended) return appended;
    fields.sources.resize(fields.messages.size(), i);
  }
  // An answer that the client has begun is continued.
  if (*list->back().find("role") == Value("assistant")) {
    fields.chat.chat.continue_final_message = true;
    fields.chat.add_generation_prompt = false;
  }
  return {};
}

bool any_marked(const Value& blocks) {
  const auto* list = blocks.get_if<ValueList>();
  return list != nullptr && std::ranges::any_of(*list, is_marked);
}

Result<void> read_system(MessageFields& fields, Value& value, const std::string& path) {
  Result<std::string> text = block_text(value, path);
  if (!text) return text.error();
  fields.system = without_header_lines(std::move(*text));
  fields.system_marked |= any_marked(value);
  return {};
}

Result<void> read_stop_sequences(MessageFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueList>() == nullptr) return json::wrong_type(path, "an array of strings", value);
  return wish::read_stop(fields.chat, value, path);
}

// Which of them are declared depends on the conversation.
Result<void> keep_tools(MessageFields& fields, Value& value, const std::string&) {
  fields.system_marked |= any_marked(value);
  fields.tools = std::move(value);
  return {};
}

Result<void> read_tool_choice(MessageFields& fields, Value& value, const std::string& path) {
  return anthropic::read_tool_choice(fields.chat, value, path);
}

Result<void> read_context_management(MessageFields& fields, Value& value, const std::string& path) {
  Result<std::vector<ContextEdit>> edits = read_context_edits(value, path, fields.gleaned.left_out);
  if (!edits) return edits.error();
  fields.edits = std::move(*edits);
  return {};
}

Result<void> read_thinking(MessageFields& fields, Value& value, const std::string& path) {
  const Value* type = value.find("type");
  if (type == nullptr || type->get_if<std::string>() == nullptr)
    return invalid_argument(fmt::format("'{}' has no 'type'", path), at_key(path, "type"));
  if (*type != Value("enabled") && *type != Value("adaptive") && *type != Value("disabled")) {
    const std::string type_path = at_key(path, "type");
    return invalid_argument(fmt::format("'{}' must be one of enabled, disabled, adaptive", type_path), type_path);
  }
  fields.chat.thinks = *type != Value("disabled");
  if (const Value* display = value.find("display"); display != nullptr) fields.hides_thinking = *display == Value("omitted");
  if (const Value* budget = value.find("budget_tokens"); budget != nullptr && !budget->is_null()) {
    const Result<std::int64_t> tokens =
        json::read_integer(*budget, at_key(path, "budget_tokens"), 0, std::numeric_limits<std::int64_t>::max());
    if (!tokens) return tokens.error();
    fields.chat.wish.thinking_budget = static_cast<std::int32_t>(std::min<std::int64_t>(*tokens, std::numeric_limits<std::int32_t>::max()));
  }
  return {};
}

// {"type":"json_schema","schema":{…}}
Result<void> read_output_format(MessageFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const Value* type = value.find("type");
  const std::string type_path = at_key(path, "type");
  if (type == nullptr || *type != Value("json_schema"))
    return invalid_argument(fmt::format("'{}' must be 'json_schema'", type_path), type_path);
  return wish::read_named_schema(fields.chat, value, path);
}

Result<void> read_output_config(MessageFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  auto& members = *value.get_if<ValueDict>();
  if (Value* effort = find_member(members, "effort"); effort != nullptr && !effort->is_null()) {
    const Result<void> read = wish::read_reasoning_effort(fields.chat, *effort, at_key(path, "effort"));
    if (!read) return read;
    fields.effort = std::exchange(fields.chat.reasoning_effort, {});
  }
  Value* format = find_member(members, "format");
  if (format == nullptr || format->is_null()) return {};
  return read_output_format(fields, *format, at_key(path, "format"));
}

Result<void> read_nothing(MessageFields&, Value&, const std::string&) { return {}; }

// Their tools are a provider's to run.
Result<void> leave_out_servers(MessageFields& fields, Value& value, const std::string& path) {
  const auto* servers = value.get_if<ValueList>();
  if (servers == nullptr) return json::wrong_type(path, "an array", value);
  if (!servers->empty()) fields.chat.wish.tools_left_out.push_back(path);
  return {};
}

struct OwnParameter {
  std::string_view name;
  Reader read;
};

constexpr std::array kConversation = {
    OwnParameter{"messages", read_messages},
    OwnParameter{"system", read_system},
    OwnParameter{"stop_sequences", read_stop_sequences},
    OwnParameter{"tools", keep_tools},
    OwnParameter{"tool_choice", read_tool_choice},
    OwnParameter{"thinking", read_thinking},
    OwnParameter{"output_config", read_output_config},
    OwnParameter{"output_format", read_output_format},  // the older name of output_config.format
    OwnParameter{"context_management", read_context_management},
    OwnParameter{"mcp_servers", leave_out_servers},
    OwnParameter{"container", read_nothing},
    OwnParameter{"betas", read_nothing},
};

Result<void> refuse_choices(BodyFields&, Value&, const std::string& path) {
  return invalid_argument(fmt::format("'{}' is not supported: a message is one answer", path), path);
}

Result<void> refuse_logprobs(BodyFields&, Value& value, const std::string& path) {
  if (value == Value(false) || value == Value(0)) return {};
  return invalid_argument(fmt::format("'{}' is not supported: a message tells of no log-probabilities", path), path);
}

Result<void> read_max_tokens(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 1);
  if (!count) return count.error();
  fields.wish.max_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*count, std::numeric_limits<std::int32_t>::max()));
  return {};
}

// What other dialects have under the same names, within the bounds of this one.
constexpr std::array kNarrower = {
    wish::Parameter{"max_tokens", read_max_tokens},
    wish::Parameter{"temperature", wish::NumberRule{&SamplingParams::temperature, 0.0F, 1.0F}},
    wish::Parameter{"n", refuse_choices},
    wish::Parameter{"n_cmpl", refuse_choices},
    wish::Parameter{"logprobs", refuse_logprobs},
    wish::Parameter{"top_logprobs", refuse_logprobs},
    wish::Parameter{"n_probs", refuse_logprobs},
    wish::Parameter{"metadata", wish::accept_object},
    wish::Parameter{"service_tier", wish::accept_string},
};

Result<void> read_members(MessageFields& fields, ValueDict& body) {
  const std::array own = {std::span<const wish::Parameter>(kNarrower)};
  for (auto& [name, value] : body) {
    if (value.is_null()) continue;
    const auto is_named = [&key = name](const auto& parameter) { return parameter.name == key; };
    const auto* known = std::find_if(kConversation.begin(), kConversation.end(), is_named);
    Result<void> read;
    if (known != kConversation.end()) {
      read = known->read(fields, value, name);
    } else if (std::any_of(kNarrower.begin(), kNarrower.end(), is_named)) {
      read = wish::read_parameter(fields.chat, name, value, name, own);
    } else {
      read = wish::read_parameter(fields.chat, name, value, name, wish::foreign_tables());
    }
    if (!read) return read;
  }
  return {};
}

// How much is thought says nothing about whether.
void tell_effort(MessageFields& fields) {
  if (fields.effort.empty()) return;
  if (fields.chat.thinks) {
    fields.chat.reasoning_effort = *fields.chat.thinks ? fields.effort : "none";
    return;
  }
  Value& kwargs = fields.chat.chat.kwargs;
  if (kwargs.is_null()) kwargs = ValueDict{};
  if (kwargs.find("reasoning_effort") == nullptr) kwargs.get_if<ValueDict>()->emplace_back("reasoning_effort", fields.effort);
}

// Images take long to look at, which is not done while a body is read: here they count nothing.
ValueList without_images(ValueList messages) {
  const auto is_image = [](const Value& part) { return part.find("type") != nullptr && *part.find("type") == Value("image"); };
  for (Value& message : messages) {
    auto* members = message.get_if<ValueDict>();
    Value* content = members != nullptr ? find_member(*members, "content") : nullptr;
    if (auto* parts = content != nullptr ? content->get_if<ValueList>() : nullptr) std::erase_if(*parts, is_image);
  }
  return messages;
}

// What the client wants cleared is cleared.
Result<std::shared_ptr<MessageDetails>> edit_context(MessageFields& fields, const wish::MessagePath& path_of) {
  auto details = std::make_shared<MessageDetails>();
  details->hides_thinking = fields.hides_thinking;
  if (!fields.edits) return details;
  const CountTokens count = [&](const ValueList& messages) -> Result<std::int64_t> {
    Result<Wish> wish = wish::finish_chat(fields.chat, without_images(messages), path_of, "messages");
    if (!wish) return wish.error();
    GenerationCall call(std::move(*wish));
    const auto prompts = encode_prompts(fields.chat.model, call);
    if (!prompts) return prompts.error();
    return static_cast<std::int64_t>(prompts->front().size());
  };
  Result<std::vector<AppliedEdit>> applied = apply_edits(*fields.edits, fields.messages, count);
  if (!applied) return applied.error();
  details->applied_edits = std::move(*applied);
  return details;
}

Result<Wish> read(Value& body, const ServedModel& model, bool counting) {
  MessageFields fields(model);
  const Result<void> read = read_members(fields, *body.get_if<ValueDict>());
  if (!read) return read.error();
  if (fields.messages.empty() && fields.chat.wish.prompt_ids.empty()) return invalid_argument("'messages' is missing", "messages");
  if (fields.messages.empty()) fields.messages = wish::unread_messages();
  fields.sources.resize(fields.messages.size());  // of those that stand for ids
  if (!fields.chat.wish.max_tokens && !counting) return invalid_argument("'max_tokens' is missing", "max_tokens");
  const Result<void> tools =
      fields.tools.is_null() ? Result<void>() : read_tools(fields.chat, fields.tools, fields.gleaned.referenced_tools, "tools");
  if (!tools) return tools.error();
  fields.chat.wish.items_left_out = std::move(fields.gleaned.left_out);
  tell_effort(fields);
  const bool has_system = !fields.system.empty();
  if (has_system) {
    ValueDict system{{"role", "system"}, {"content", std::move(fields.system)}};
    if (fields.system_marked) system.emplace_back("cache_control", true);
    fields.messages.insert(fields.messages.begin(), std::move(system));
  }
  const auto path_of = [has_system, &fields](std::size_t index) {
    if (has_system && index == 0) return std::string("system");
    return at_index("messages", fields.sources[index - (has_system ? 1 : 0)]);
  };
  const Result<std::shared_ptr<MessageDetails>> details = edit_context(fields, path_of);
  if (!details) return details.error();
  const auto messages = static_cast<std::int32_t>(fields.messages.size());
  Result<Wish> wish = wish::finish_chat(std::move(fields.chat), std::move(fields.messages), path_of, "messages");
  if (wish && fields.system_marked && !has_system) wish->marked_turns.push_back(messages);  // the turn that templates make for tools
  if (wish) wish->details = *details;
  return wish;
}

}  // namespace

Result<Wish> read_message(Value& body, const ServedModel& model) { return read(body, model, false); }
Result<Wish> read_count(Value& body, const ServedModel& model) { return read(body, model, true); }

}  // namespace braid::net::anthropic
