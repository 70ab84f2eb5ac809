#include <fmt/format.h>
#include <net/json/fields.h>
#include <net/json/parse.h>
#include <net/openai/messages.h>
#include <net/openai/parameters.h>
#include <net/openai/request.h>

#include <algorithm>
#include <array>
#include <utility>

namespace braid::net::openai {
namespace {

constexpr std::size_t kMaxPrompts = 1024;
constexpr std::int32_t kDefaultCompletionTokens = 16;

Result<PromptItem> read_prompt_item(Value& item, const std::string& path, const ServedModel& model) {
  const auto empty = [&path] { return invalid_argument(fmt::format("'{}' is empty", path), path); };
  if (auto* text = item.get_if<std::string>()) {
    if (text->empty()) return empty();
    return PromptItem(std::move(*text));
  }
  if (item.get_if<ValueList>() == nullptr) return json::wrong_type(path, "a string or an array of token ids", item);
  Result<std::vector<TokenId>> ids = read_token_ids(item, path, model);
  if (!ids) return ids.error();
  if (ids->empty()) return empty();
  return PromptItem(std::move(*ids));
}

// A string, token ids, or a list of either.
Result<void> read_prompt(Draft& draft, Value& value, const std::string& path) {
  auto* list = value.get_if<ValueList>();
  std::vector<PromptItem> items;
  const bool single = list == nullptr || (!list->empty() && list->front().get_if<std::int64_t>() != nullptr);
  if (list == nullptr && value.get_if<std::string>() == nullptr)
    return json::wrong_type(path, "a string, an array of strings, or token ids", value);
  if (list != nullptr && list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  if (!single && list->size() > kMaxPrompts)
    return invalid_argument(fmt::format("'{}' has {} prompts, at most {} may be given", path, list->size(), kMaxPrompts), path);
  const std::size_t count = single ? 1 : list->size();
  for (std::size_t i = 0; i < count; ++i) {
    Result<PromptItem> item =
        single ? read_prompt_item(value, path, draft.model) : read_prompt_item((*list)[i], json::at_index(path, i), draft.model);
    if (!item) return item.error();
    items.push_back(std::move(*item));
  }
  draft.prompt = std::move(items);
  return {};
}

Result<void> read_completion_logprobs(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 0, kMaxTopLogprobs);
  if (!count) return count.error();
  draft.call.sampling.top_logprobs = static_cast<std::int32_t>(*count);
  return {};
}

Result<void> read_chat_logprobs(Draft& draft, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  draft.logprobs = *wanted;
  return {};
}

Result<void> read_top_logprobs(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 0, kMaxTopLogprobs);
  if (!count) return count.error();
  draft.top_logprobs = static_cast<std::int32_t>(*count);
  return {};
}

Result<void> read_messages(Draft& draft, Value& value, const std::string& path) {
  const Result<void> normal = normalize_messages(value, path);
  if (!normal) return normal.error();
  draft.messages = std::move(value);
  return {};
}

Result<void> read_template_kwargs(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  draft.chat.kwargs = std::move(value);
  return {};
}

Result<void> read_add_generation_prompt(Draft& draft, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  draft.chat.add_generation_prompt = *wanted;
  return {};
}

constexpr std::array kCompletion = {
    Parameter{"prompt", read_prompt},
    Parameter{"logprobs", read_completion_logprobs},
};

constexpr std::array kChat = {
    Parameter{"messages", read_messages},
    Parameter{"logprobs", read_chat_logprobs},
    Parameter{"top_logprobs", read_top_logprobs},
    Parameter{"chat_template_kwargs", read_template_kwargs},
    Parameter{"add_generation_prompt", read_add_generation_prompt},
};

Result<void> read_body(Draft& draft, std::string& body, std::span<const Parameter> own) {
  Result<Value> document = json::parse(body);
  if (!document) return document.error();
  auto* members = document->get_if<ValueDict>();
  if (members == nullptr)
    return invalid_argument(fmt::format("the body must be a JSON object, not {}", json::type_name(*document)));
  const std::array tables = {own, common_parameters(), refused_parameters()};
  const Result<void> read = read_parameters(draft, *members, tables);
  if (draft.max_completion_tokens) draft.call.max_tokens = draft.max_completion_tokens;  // the newer name of the two
  return read;
}

// What only shows when all fields are known.
Result<void> check_together(const Draft& draft) {
  const GenerationCall& call = draft.call;
  if (draft.has_stream_options && !call.stream)
    return invalid_argument("'stream_options' is only allowed when 'stream' is true", "stream_options");
  if (call.max_tokens && call.stop.min_tokens > *call.max_tokens) {
    return invalid_argument(
        fmt::format("'min_tokens' is {}, more than the {} of max_tokens", call.stop.min_tokens, *call.max_tokens), "min_tokens");
  }
  return {};
}

}  // namespace

bool names_model(const ServedModel& model, const std::string& name) {
  return name.empty() || name == "default" || name == model.id;
}

Result<GenerationCall> parse_completion(std::string& body, const ServedModel& model) {
  Draft draft(model);
  Result<void> read = read_body(draft, body, kCompletion);
  if (!read) return read.error();
  if (!draft.prompt) return invalid_argument("'prompt' is missing", "prompt");
  draft.call.prompt = std::move(*draft.prompt);
  if (!draft.call.max_tokens) draft.call.max_tokens = std::max(kDefaultCompletionTokens, draft.call.stop.min_tokens);
  read = check_together(draft);
  if (!read) return read.error();
  return std::move(draft.call);
}

Result<GenerationCall> parse_chat(std::string& body, const ServedModel& model) {
  Draft draft(model);
  Result<void> read = read_body(draft, body, kChat);
  if (!read) return read.error();
  if (!draft.messages) return invalid_argument("'messages' is missing", "messages");
  if (draft.top_logprobs && !draft.logprobs)
    return invalid_argument("'top_logprobs' is only allowed when 'logprobs' is true", "top_logprobs");
  draft.chat.messages = std::move(*draft.messages);
  draft.call.prompt = std::move(draft.chat);
  if (draft.logprobs) draft.call.sampling.top_logprobs = draft.top_logprobs.value_or(0);
  read = check_together(draft);
  if (!read) return read.error();
  return std::move(draft.call);
}

}  // namespace braid::net::openai
