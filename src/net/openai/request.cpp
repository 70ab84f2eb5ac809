#include "net/openai/request.h"

#include "net/json/fields.h"
#include "net/openai/messages.h"
#include "net/openai/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::openai {
namespace {

constexpr std::size_t kMaxPrompts = 1024;
constexpr std::size_t kMaxSequences = 1024;  // of one request: prompts times candidates
constexpr std::int32_t kMaxBestOf = 20;      // as at OpenAI
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
  const bool single =
      list == nullptr || (!list->empty() && (list->front().get_if<std::int64_t>() != nullptr || list->front().get_if<double>() != nullptr));
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

Result<void> read_best_of(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 1, kMaxBestOf);
  if (!count) return count.error();
  draft.best_of = static_cast<std::int32_t>(*count);
  return {};
}

Result<void> read_suffix(Draft& draft, Value& value, const std::string& path) {
  Result<std::string> suffix = json::read_string(value, path);
  if (!suffix) return suffix.error();
  if (suffix->empty()) return {};
  if (!draft.model.codec->infill_tokens())
    return invalid_argument(fmt::format("'{}' is not supported by this model: it has no fill-in-the-middle tokens", path), path);
  draft.call.suffix = std::move(*suffix);
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
  draft.add_generation_prompt = *wanted;
  return {};
}

Result<void> read_continue_final_message(Draft& draft, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  draft.chat.continue_final_message = *wanted;
  return {};
}

Result<void> read_reasoning_effort(Draft& draft, Value& value, const std::string& path) {
  static constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
  Result<std::string> effort = json::read_string(value, path);
  if (!effort) return effort.error();
  if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end())
    return invalid_argument(fmt::format("'{}' must be one of '{}'", path, fmt::join(kEfforts, "', '")), path);
  draft.reasoning_effort = std::move(*effort);
  return {};
}

constexpr std::array kCompletion = {
    Parameter{"prompt", read_prompt},
    Parameter{"suffix", read_suffix},
    Parameter{"echo", FlagRule{&GenerationCall::echo}},
    Parameter{"best_of", read_best_of},
    Parameter{"logprobs", read_completion_logprobs},
};

constexpr std::array kChat = {
    Parameter{"messages", read_messages},
    Parameter{"logprobs", read_chat_logprobs},
    Parameter{"top_logprobs", read_top_logprobs},
    Parameter{"chat_template_kwargs", read_template_kwargs},
    Parameter{"add_generation_prompt", read_add_generation_prompt},
    Parameter{"continue_final_message", read_continue_final_message},
    Parameter{"reasoning_effort", read_reasoning_effort},
    Parameter{"thinking_budget", CountRule<GenerationCall>{&GenerationCall::thinking_budget, 0}},
    Parameter{"reasoning_budget", CountRule<GenerationCall>{&GenerationCall::thinking_budget, -1}},
    Parameter{"reasoning_budget_tokens", CountRule<GenerationCall>{&GenerationCall::thinking_budget, -1}},
    Parameter{"thinking_token_budget", CountRule<GenerationCall>{&GenerationCall::thinking_budget, -1}},
};

Result<void> read_body(Draft& draft, Value& body, std::span<const Parameter> own, std::span<const Parameter> tools = {}) {
  const std::array tables = {own, tools, common_parameters(), sampling_parameters(), structured_output_parameters(), refused_parameters()};
  const Result<void> read = read_parameters(draft, *body.get_if<ValueDict>(), tables);
  if (!read) return read;
  if (draft.max_completion_tokens) draft.call.max_tokens = draft.max_completion_tokens;  // the newer name of the two
  if (draft.priority) draft.call.priority = *draft.priority;
  draft.call.candidates = draft.best_of.value_or(draft.call.choices);
  return encode_breakers(draft);
}

// What only shows when all fields are known.
Result<void> check_together(const Draft& draft) {
  const GenerationCall& call = draft.call;
  if (draft.has_stream_options && !call.stream)
    return invalid_argument("'stream_options' is only allowed when 'stream' is true", "stream_options");
  if (call.max_tokens && call.stop.min_tokens > *call.max_tokens) {
    return invalid_argument(fmt::format("'min_tokens' is more than the {} of max_tokens", *call.max_tokens), "min_tokens");
  }
  if (call.prompt_logprobs >= 0 && call.stream)
    return invalid_argument("'prompt_logprobs' is not available when 'stream' is true", "prompt_logprobs");
  if (call.constraint_spec && draft.model.constraints == nullptr)
    return invalid_argument(fmt::format("'{}' is not supported by this server", call.constraint_spec->path), call.constraint_spec->path);
  return {};
}

// Likewise, of completions.
Result<void> check_candidates(const GenerationCall& call, std::size_t prompts) {
  if (call.candidates < call.choices)
    return invalid_argument(fmt::format("'best_of' is {}, less than the {} of n", call.candidates, call.choices), "best_of");
  if (call.candidates > call.choices && call.stream)
    return invalid_argument("'best_of' is not available when 'stream' is true: the best are known at the end", "best_of");
  const std::size_t sequences = prompts * static_cast<std::size_t>(call.candidates);
  if (sequences <= kMaxSequences) return {};
  return invalid_argument(fmt::format("{} prompts with {} answers each are {} sequences, and a request may have {}", prompts,
                                      call.candidates, sequences, kMaxSequences),
                          call.candidates > call.choices ? "best_of" : "n");
}

Result<void> check_infill(const GenerationCall& call) {
  if (call.suffix && call.echo) return invalid_argument("'echo' and 'suffix' exclude each other", "echo");
  return {};
}

// The template variables by which the common families switch their thinking on, off and to a level or a number of tokens. A
// request's own chat_template_kwargs win.
void add_reasoning_kwargs(Value& kwargs, const std::string& effort, std::int32_t budget) {
  ValueDict added;
  const bool thinks = effort != "none";
  if (!effort.empty()) added = {{"reasoning_effort", effort}, {"enable_thinking", thinks}, {"thinking", thinks}};
  if (budget >= 0)
    for (const char* name : {"thinking_budget", "reasoning_budget"}) added.emplace_back(name, std::int64_t{budget});
  if (added.empty()) return;
  if (kwargs.is_null()) kwargs = ValueDict{};
  auto& members = *kwargs.get_if<ValueDict>();
  for (auto& [name, value] : added)
    if (kwargs.find(name) == nullptr) members.emplace_back(name, std::move(value));
}

Result<void> finish_chat(Draft& draft) {
  ChatPrompt& chat = draft.chat;
  if (chat.continue_final_message && draft.add_generation_prompt.value_or(false))
    return invalid_argument("'continue_final_message' and 'add_generation_prompt' exclude each other", "continue_final_message");
  chat.add_generation_prompt = draft.add_generation_prompt.value_or(!chat.continue_final_message);
  add_reasoning_kwargs(chat.kwargs, draft.reasoning_effort, draft.call.thinking_budget);
  chat.messages = std::move(*draft.messages);
  draft.call.prompt = std::move(chat);
  draft.call.prompt_field = "messages";
  if (draft.logprobs) draft.call.sampling.top_logprobs = draft.top_logprobs.value_or(0);
  return {};
}

Result<void> read_input(Draft& draft, Value& value, const std::string& path) {
  Result<PromptItem> item = read_prompt_item(value, path, draft.model);
  if (!item) return item.error();
  draft.prompt.emplace().push_back(std::move(*item));
  return {};
}

constexpr std::array kScored = {Parameter{"input", read_input}};

}  // namespace

std::span<const Parameter> completion_parameters() { return kCompletion; }
std::span<const Parameter> chat_parameters() { return kChat; }

bool names_model(const ServedModel& model, const std::string& name) { return name.empty() || name == "default" || name == model.id; }

Result<GenerationCall> read_completion(Value& body, const ServedModel& model) {
  Draft draft(model);
  Result<void> read = read_body(draft, body, kCompletion);
  if (!read) return read.error();
  if (!draft.prompt) return invalid_argument("'prompt' is missing", "prompt");
  if (!draft.call.max_tokens) draft.call.max_tokens = std::max(kDefaultCompletionTokens, draft.call.stop.min_tokens);
  read = check_together(draft);
  if (read) read = check_candidates(draft.call, draft.prompt->size());
  if (read) read = check_infill(draft.call);
  if (!read) return read.error();
  draft.call.prompt = std::move(*draft.prompt);
  return std::move(draft.call);
}

Result<GenerationCall> read_chat(Value& body, const ServedModel& model) {
  Draft draft(model);
  Result<void> read = read_body(draft, body, kChat, tool_parameters());
  if (!read) return read.error();
  if (!draft.messages) return invalid_argument("'messages' is missing", "messages");
  if (draft.top_logprobs.value_or(0) > 0 && !draft.logprobs)
    return invalid_argument("'top_logprobs' is only allowed when 'logprobs' is true", "top_logprobs");
  read = check_together(draft);
  if (read) read = finish_tools(draft);
  if (read) read = finish_chat(draft);
  if (!read) return read.error();
  return std::move(draft.call);
}

Result<GenerationCall> read_scored(Value& body, const ServedModel& model) {
  Draft draft(model);
  const std::array tables = {std::span<const Parameter>(kScored), common_parameters()};
  const Result<void> read = read_parameters(draft, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!draft.prompt) return invalid_argument("'input' is missing", "input");
  GenerationCall call;  // of the common parameters, those about an answer mean nothing here
  call.prompt = std::move(*draft.prompt);
  call.prompt_field = "input";
  call.prompt_logprobs = 0;
  call.max_tokens = 0;
  call.cache_salt = std::move(draft.call.cache_salt);
  call.priority = draft.priority ? draft.priority : draft.call.priority;
  return call;
}

}  // namespace braid::net::openai
