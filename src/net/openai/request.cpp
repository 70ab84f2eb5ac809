#include "net/openai/request.h"

#include "net/json/fields.h"
#include "net/wish/finish.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::openai {
namespace {

using wish::BodyFields;
using wish::FlagRule;
using wish::Parameter;

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
  Result<std::vector<TokenId>> ids = wish::read_token_ids(item, path, model);
  if (!ids) return ids.error();
  if (ids->empty()) return empty();
  return PromptItem(std::move(*ids));
}

Result<void> read_completion_logprobs(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 0, kMaxTopLogprobs);
  if (!count) return count.error();
  fields.wish.sampling.top_logprobs = static_cast<std::int32_t>(*count);
  return {};
}

Result<void> read_best_of(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 1, kMaxBestOf);
  if (!count) return count.error();
  fields.best_of = static_cast<std::int32_t>(*count);
  return {};
}

Result<void> read_suffix(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::string> suffix = json::read_string(value, path);
  if (!suffix) return suffix.error();
  if (suffix->empty()) return {};
  if (!fields.model.codec->infill_tokens())
    return invalid_argument(fmt::format("'{}' is not supported by this model: it has no fill-in-the-middle tokens", path), path);
  fields.wish.suffix = std::move(*suffix);
  return {};
}

Result<void> read_messages(BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  if (list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  fields.messages = std::move(value);
  return {};
}

// vLLM's: a prompt in tokens.
Result<void> read_prompt_ids(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::vector<TokenId>> ids = wish::read_token_ids(value, path, fields.model);
  if (!ids) return ids.error();
  if (ids->empty()) return invalid_argument(fmt::format("'{}' is empty: it gives no token to start from", path), path);
  if (fields.prompt) return invalid_argument(fmt::format("'{}' and 'prompt' exclude each other", path), path);
  fields.prompt.emplace().emplace_back(std::move(*ids));
  return {};
}

constexpr std::array kCompletion = {
    Parameter{"prompt", read_prompt},
    Parameter{"suffix", read_suffix},
    Parameter{"echo", FlagRule{&Wish::echo}},
    Parameter{"best_of", read_best_of},
    Parameter{"logprobs", read_completion_logprobs},
    Parameter{"prompt_token_ids", read_prompt_ids},
};

constexpr std::array kChat = {
    Parameter{"messages", read_messages},
    Parameter{"echo", FlagRule{&Wish::echo}},
};

// What only shows of completions when all fields are known.
Result<void> check_candidates(const Wish& call, std::size_t prompts) {
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

Result<void> check_infill(const Wish& call) {
  if (call.suffix && call.echo) return invalid_argument("'echo' and 'suffix' exclude each other", "echo");
  return {};
}

Result<void> read_input(BodyFields& fields, Value& value, const std::string& path) {
  Result<PromptItem> item = read_prompt_item(value, path, fields.model);
  if (!item) return item.error();
  fields.prompt.emplace().push_back(std::move(*item));
  return {};
}

constexpr std::array kScored = {Parameter{"input", read_input}};

}  // namespace

std::span<const Parameter> completion_parameters() { return kCompletion; }
std::span<const Parameter> chat_parameters() { return kChat; }

Result<Wish> read_completion(Value& body, const ServedModel& model) {
  BodyFields fields(model);
  const std::array tables = {
      completion_parameters(),  wish::common_parameters(),      wish::sampling_parameters(),     wish::structured_output_parameters(),
      wish::token_parameters(), wish::speculation_parameters(), wish::other_server_parameters(), wish::refused_parameters()};
  Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!fields.prompt) return invalid_argument("'prompt' is missing", "prompt");
  read = wish::finish_common(fields);
  Wish& wish = fields.wish;
  if (!wish.max_tokens) wish.max_tokens = std::max(kDefaultCompletionTokens, wish.stop.min_tokens);
  if (read) read = check_candidates(wish, fields.prompt->size());
  if (read) read = check_infill(wish);
  if (!read) return read.error();
  wish.prompt = std::move(*fields.prompt);
  return std::move(wish);
}

Result<Wish> read_chat(Value& body, const ServedModel& model) {
  BodyFields fields(model);
  const std::array tables = {chat_parameters(),
                             tool_parameters(),
                             wish::chat_parameters(),
                             wish::common_parameters(),
                             wish::sampling_parameters(),
                             wish::structured_output_parameters(),
                             wish::token_parameters(),
                             wish::speculation_parameters(),
                             wish::other_server_parameters(),
                             wish::refused_parameters()};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!fields.messages && fields.wish.prompt_ids.empty()) return invalid_argument("'messages' is missing", "messages");
  if (!fields.messages) fields.messages = wish::unread_messages();
  ValueList messages = std::move(*fields.messages->get_if<ValueList>());
  const auto path_of = [](std::size_t index) { return json::at_index("messages", index); };
  return wish::finish_chat(std::move(fields), std::move(messages), path_of, "messages");
}

Result<Wish> read_scored(Value& body, const ServedModel& model) {
  BodyFields fields(model);
  const std::array tables = {std::span<const Parameter>(kScored), wish::common_parameters(), wish::token_parameters()};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!fields.prompt) return invalid_argument("'input' is missing", "input");
  Wish wish = unanswered(fields, "input");
  wish.prompt_logprobs = 0;
  return wish;
}

Result<void> read_prompt(BodyFields& fields, Value& value, const std::string& path) {
  auto* list = value.get_if<ValueList>();
  std::vector<PromptItem> items;
  const bool single = list == nullptr || (!list->empty() && list->front().number());
  if (list == nullptr && value.get_if<std::string>() == nullptr)
    return json::wrong_type(path, "a string, an array of strings, or token ids", value);
  if (list != nullptr && list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  if (!single && list->size() > kMaxPrompts)
    return invalid_argument(fmt::format("'{}' has {} prompts, at most {} may be given", path, list->size(), kMaxPrompts), path);
  const std::size_t count = single ? 1 : list->size();
  for (std::size_t i = 0; i < count; ++i) {
    Result<PromptItem> item =
        single ? read_prompt_item(value, path, fields.model) : read_prompt_item((*list)[i], json::at_index(path, i), fields.model);
    if (!item) return item.error();
    items.push_back(std::move(*item));
  }
  if (fields.prompt) return invalid_argument(fmt::format("'{}' and 'prompt_token_ids' exclude each other", path), path);
  fields.prompt = std::move(items);
  return {};
}

Wish unanswered(BodyFields& fields, std::string_view field) {
  Wish wish;
  wish.prompt = std::move(*fields.prompt);
  wish.prompt_field = field;
  wish.max_tokens = 0;
  wish.prompt_tail = fields.wish.prompt_tail;
  wish.add_special = fields.wish.add_special;
  wish.cache_salt = std::move(fields.wish.cache_salt);
  wish.prompt_head = fields.wish.prompt_head;
  wish.priority = fields.priority ? fields.priority : fields.wish.priority;
  return wish;
}

}  // namespace braid::net::openai
