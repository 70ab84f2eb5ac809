#include "net/ollama/request.h"

#include "net/json/fields.h"
#include "net/ollama/line_format.h"
#include "net/ollama/options.h"
#include "net/ollama/own_settings.h"
#include "net/wish/finish.h"
#include "net/wish/images.h"
#include "net/wish/parameters.h"
#include "net/wish/tools.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::ollama {
namespace {

using json::at_index;
using json::at_key;
using wish::BodyFields;
using wish::Parameter;

constexpr wish::ToolForm kToolForm = {.holder = "function", .parameters = "parameters", .most_name_bytes = 128};

bool is_empty(const Value& value) {
  const auto* list = value.get_if<ValueList>();
  const auto* text = value.get_if<std::string>();
  return (list != nullptr && list->empty()) || (text != nullptr && text->empty());
}

// Tokens that an answer before this one was told with.
Result<void> read_context(BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<std::int64_t> id = json::read_integer((*list)[i], at_index(path, i), 0, fields.model.codec->vocab_size() - 1);
    if (!id) return id.error();
    fields.wish.context.push_back(static_cast<TokenId>(*id));
  }
  return {};
}

Result<void> accept_images(BodyFields&, Value& value, const std::string& path) {
  if (value.get_if<ValueList>() != nullptr) return {};
  return json::wrong_type(path, "an array", value);
}

// "json", a schema, or nothing.
Result<void> read_format(BodyFields& fields, Value& value, const std::string& path) {
  if (is_empty(value)) return {};
  if (value == Value("json")) return wish::want_json_object(fields, path);
  if (value.get_if<ValueDict>() == nullptr) return invalid_argument(fmt::format("'{}' must be 'json' or a JSON schema", path), path);
  return wish::read_schema(fields, value, path);
}

// Whether, or how much.
Result<void> read_think(BodyFields& fields, Value& value, const std::string& path) {
  if (const auto* wanted = value.get_if<bool>()) {
    fields.thinks = *wanted;
    return {};
  }
  return wish::read_reasoning_effort(fields, value, path);
}

Result<void> read_logprobs(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.logprobs = *wanted;
  return {};
}

// What a message says, behind the images that it shows, which are base64.
Result<Value> shown_content(Value text, Value& images, const std::string& path) {
  auto* list = images.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", images);
  ValueList parts;
  for (std::size_t i = 0; i < list->size(); ++i) parts.push_back(wish::base64_image_part(std::move((*list)[i]), at_index(path, i)));
  const auto* words = text.get_if<std::string>();
  if (words == nullptr || !words->empty()) parts.emplace_back(ValueDict{{"type", "text"}, {"text", std::move(text)}});
  return Value(std::move(parts));
}

// A message has Ollama's names for what others call reasoning_content and name.
Result<void> rename_members(Value& message, const std::string& path) {
  auto* members = message.get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(path, "an object", message);
  for (auto& [name, value] : *members) {
    if (name == "thinking") name = "reasoning_content";
    if (name == "tool_name") name = "name";
  }
  Value* images = find_member(*members, "images");
  if (images == nullptr) return {};
  if (!images->is_null() && !is_empty(*images)) {
    Value* content = find_member(*members, "content");
    Result<Value> shown = shown_content(content != nullptr ? std::move(*content) : Value(""), *images, at_key(path, "images"));
    if (!shown) return shown.error();
    std::erase_if(*members, [](const auto& member) { return member.first == "content"; });
    members->emplace_back("content", std::move(*shown));
  }
  std::erase_if(*members, [](const auto& member) { return member.first == "images"; });
  return {};
}

Result<void> read_messages(BodyFields& fields, Value& value, const std::string& path) {
  auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<void> renamed = rename_members((*list)[i], at_index(path, i));
    if (!renamed) return renamed;
  }
  fields.messages = std::move(value);
  return {};
}

// Of another type is what only a provider's server runs.
Result<void> read_tools(BodyFields& fields, Value& value, const std::string& path) {
  auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  fields.functions.clear();
  fields.chat.tools = Value();
  for (std::size_t i = 0; i < list->size(); ++i) {
    Value& tool = (*list)[i];
    const Value* type = tool.find("type");
    const auto* name = type != nullptr ? type->get_if<std::string>() : nullptr;
    if (name != nullptr && *name != kToolForm.holder) {
      fields.wish.tools_left_out.push_back(*name);
      continue;
    }
    const std::string function_path = at_key(at_index(path, i), kToolForm.holder);
    const Value* function = tool.find(kToolForm.holder);
    if (function == nullptr) return invalid_argument(fmt::format("'{}' is missing", function_path), function_path);
    if (function->get_if<ValueDict>() == nullptr) return json::wrong_type(function_path, "an object", *function);
    const Result<void> added = wish::add_tool(fields, std::move(tool), at_index(path, i), kToolForm);
    if (!added) return added;
  }
  return {};
}

constexpr std::array kCommon = {
    Parameter{"model", wish::accept_string}, Parameter{"stream", wish::FlagRule{&Wish::stream}},
    Parameter{"options", read_options},      Parameter{"format", read_format},
    Parameter{"think", read_think},          Parameter{"keep_alive", check_keep_alive},
    Parameter{"logprobs", read_logprobs},    Parameter{"top_logprobs", wish::read_top_logprobs},
};

constexpr std::array kChat = {
    Parameter{"messages", read_messages},
    Parameter{"tools", read_tools},
};

// Of /api/generate. All but the last are read by read_generate() itself: they only mean something together.
constexpr std::array<std::string_view, 4> kPromptTexts = {"prompt", "suffix", "system", "template"};
constexpr std::array kGenerate = {
    Parameter{"prompt", wish::accept_string}, Parameter{"suffix", wish::accept_string},   Parameter{"system", wish::accept_string},
    Parameter{"raw", wish::accept_bool},      Parameter{"template", wish::accept_string}, Parameter{"images", accept_images},
    Parameter{"context", read_context},
};

// "" where there is none.
Result<std::string> text_of(const Value& body, std::string_view name) {
  const Value* value = body.find(name);
  if (value == nullptr || value->is_null()) return std::string();
  return json::read_string(*value, std::string(name));
}

// The prompt as it is, without the model's template.
Result<Wish> finish_raw(BodyFields fields, std::string prompt, std::string suffix) {
  const Result<void> right = wish::finish_common(fields);
  if (!right) return right.error();
  if (!suffix.empty() && !fields.model.codec->infill_tokens())
    return invalid_argument("'suffix' is not supported by this model: it has no fill-in-the-middle tokens", "suffix");
  if (!suffix.empty()) fields.wish.suffix = std::move(suffix);
  if (fields.logprobs) fields.wish.sampling.top_logprobs = fields.top_logprobs.value_or(0);
  fields.wish.prompt = std::vector<PromptItem>{std::move(prompt)};
  return std::move(fields.wish);
}

// Ollama's clients load a model by asking for no answer. Here it is loaded already.
Wish loaded(BodyFields fields, bool chat) {
  fields.wish.said_at_once = load_line(fields.model, chat);
  return std::move(fields.wish);
}

}  // namespace

Result<Wish> read_chat(Value& body, const ServedModel& model) {
  BodyFields fields(model);
  set_defaults(fields.wish, model.defaults);
  apply_own_parameters(fields);
  const std::array tables = {std::span<const Parameter>(kCommon), std::span<const Parameter>(kChat)};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!fields.messages && body.find("model") != nullptr) return loaded(std::move(fields), true);
  if (!fields.messages) return invalid_argument("'messages' is missing", "messages");
  ValueList messages = std::move(*fields.messages->get_if<ValueList>());
  if (messages.empty()) return loaded(std::move(fields), true);
  const std::size_t own = put_own_messages(messages, model);
  const auto path_of = [own](std::size_t index) { return index < own ? std::string("model") : at_index("messages", index - own); };
  return wish::finish_chat(std::move(fields), std::move(messages), path_of, "messages");
}

Result<Wish> read_generate(Value& body, const ServedModel& model) {
  BodyFields fields(model);
  set_defaults(fields.wish, model.defaults);
  apply_own_parameters(fields);
  const std::array tables = {std::span<const Parameter>(kCommon), std::span<const Parameter>(kGenerate)};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  std::array<std::string, kPromptTexts.size()> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Result<std::string> text = text_of(body, kPromptTexts[i]);
    if (!text) return text.error();
    texts[i] = std::move(*text);
  }
  auto& [prompt, suffix, system, form] = texts;
  const auto member = std::ranges::find(*body.get_if<ValueDict>(), "images", &std::pair<std::string, Value>::first);
  Value* images =
      member != body.get_if<ValueDict>()->end() && !member->second.is_null() && !is_empty(member->second) ? &member->second : nullptr;
  if (prompt.empty() && suffix.empty() && images == nullptr) return loaded(std::move(fields), false);
  const Value* raw = body.find("raw");
  const Result<bool> is_raw = raw == nullptr || raw->is_null() ? Result<bool>(false) : json::read_bool(*raw, "raw");
  if (!is_raw) return is_raw.error();
  if (images != nullptr && (*is_raw || !suffix.empty()))
    return invalid_argument("'images' are shown by the model's chat template, which 'raw' and 'suffix' leave out", "images");
  if (*is_raw || !suffix.empty()) {
    const std::string_view extra = !form.empty() ? "template" : !fields.wish.context.empty() ? "context" : "";
    if (!extra.empty())
      return invalid_argument(fmt::format("'{}' has no place where the prompt is 'raw', or has a 'suffix'", extra), std::string(extra));
    return finish_raw(std::move(fields), std::move(prompt), std::move(suffix));
  }
  if (images != nullptr && !fields.wish.context.empty())
    return invalid_argument("'images' and 'context' exclude each other: send the conversation to /api/chat", "context");
  fields.chat.template_text = std::move(form);
  fields.wish.return_token_ids = true;  // the answer's 'context'
  ValueList messages;
  if (!system.empty()) messages.emplace_back(ValueDict{{"role", "system"}, {"content", std::move(system)}});
  Result<Value> content = images != nullptr ? shown_content(std::move(prompt), *images, "images") : Result<Value>(std::move(prompt));
  if (!content) return content.error();
  messages.emplace_back(ValueDict{{"role", "user"}, {"content", std::move(*content)}});
  put_own_messages(messages, model);
  const auto path_of = [last = messages.size() - 1](std::size_t index) { return std::string(index < last ? "system" : "prompt"); };
  return wish::finish_chat(std::move(fields), std::move(messages), path_of, "prompt");
}

}  // namespace braid::net::ollama
