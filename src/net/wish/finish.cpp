#include "net/wish/finish.h"

#include "net/wish/parameters.h"
#include "net/wish/tools.h"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::net::wish {
namespace {

// What only shows when all fields are known.
Result<void> check_together(const BodyFields& fields) {
  const Wish& wish = fields.wish;
  if (fields.has_stream_options && !wish.stream)
    return invalid_argument("'stream_options' is only allowed when 'stream' is true", "stream_options");
  if (wish.max_tokens && wish.stop.min_tokens > *wish.max_tokens) {
    return invalid_argument(fmt::format("'min_tokens' is more than the {} of max_tokens", *wish.max_tokens), "min_tokens");
  }
  if (wish.prompt_logprobs >= 0 && wish.stream)
    return invalid_argument("'prompt_logprobs' is not available when 'stream' is true", "prompt_logprobs");
  if (wish.constraint_spec && fields.model.constraints == nullptr)
    return invalid_argument(fmt::format("'{}' is not supported by this server", wish.constraint_spec->path), wish.constraint_spec->path);
  return {};
}

// The template variables by which the common families switch their thinking on, off and to a level or a number of tokens, and how much
// is to be said. A request's own chat_template_kwargs win.
void add_kwargs(Value& kwargs, const BodyFields& fields) {
  const std::string& effort = fields.reasoning_effort;
  const std::int32_t budget = fields.wish.thinking_budget;
  ValueDict added;
  if (!effort.empty()) added.emplace_back("reasoning_effort", effort);
  if (!effort.empty() || fields.thinks)
    for (const char* name : {"enable_thinking", "thinking"}) added.emplace_back(name, fields.thinks.value_or(effort != "none"));
  if (budget >= 0)
    for (const char* name : {"thinking_budget", "reasoning_budget"}) added.emplace_back(name, std::int64_t{budget});
  if (!fields.verbosity.empty()) added.emplace_back("verbosity", fields.verbosity);
  if (!fields.documents.is_null()) added.emplace_back("documents", fields.documents);
  if (added.empty()) return;
  if (kwargs.is_null()) kwargs = ValueDict{};
  auto& members = *kwargs.get_if<ValueDict>();
  for (auto& [name, value] : added)
    if (kwargs.find(name) == nullptr) members.emplace_back(name, std::move(value));
}

// The operator's own, under those of the request.
void add_default_kwargs(Value& kwargs, const Value& defaults) {
  const auto* added = defaults.get_if<ValueDict>();
  if (added == nullptr) return;
  if (kwargs.is_null()) kwargs = ValueDict{};
  auto& members = *kwargs.get_if<ValueDict>();
  for (const auto& [name, value] : *added)
    if (kwargs.find(name) == nullptr) members.emplace_back(name, value);
}

}  // namespace

Result<void> finish_common(BodyFields& fields) {
  if (fields.max_completion_tokens) fields.wish.max_tokens = fields.max_completion_tokens;  // the newer name of the two
  if (fields.priority) fields.wish.priority = *fields.priority;
  fields.wish.candidates = fields.best_of.value_or(fields.wish.choices);
  Result<void> right = order_samplers(fields);
  if (right) right = encode_breakers(fields);
  if (right) right = encode_bad_words(fields);
  return right ? check_together(fields) : right;
}

Result<Wish> finish_chat(BodyFields fields, ValueList messages, const MessagePath& path_of, std::string_view field) {
  if (messages.empty()) return invalid_argument(fmt::format("'{}' is empty", field), std::string(field));
  fields.wish.marked_turns = take_marks(messages);
  Result<void> right = finish_common(fields);
  Sight sight{.sees = fields.model.images != nullptr};
  if (right) right = normalize_messages(messages, path_of, sight);
  fields.wish.images = std::move(sight.images);
  if (right) right = finish_tools(fields);
  if (!right) return right.error();
  if (fields.top_logprobs.value_or(0) > 0 && !fields.logprobs)
    return invalid_argument("'top_logprobs' is only allowed when 'logprobs' is true", "top_logprobs");
  ChatPrompt& chat = fields.chat;
  if (chat.continue_final_message && fields.add_generation_prompt.value_or(false))
    return invalid_argument("'continue_final_message' and 'add_generation_prompt' exclude each other", "continue_final_message");
  chat.add_generation_prompt = fields.add_generation_prompt.value_or(!chat.continue_final_message);
  if (fields.reasoning_effort.empty() && !fields.thinks) fields.thinks = fields.model.defaults.reasoning;
  add_kwargs(chat.kwargs, fields);
  add_default_kwargs(chat.kwargs, fields.model.defaults.template_kwargs);
  chat.messages = std::move(messages);
  fields.wish.prompt = std::move(chat);
  fields.wish.prompt_field = field;
  if (fields.logprobs) fields.wish.sampling.top_logprobs = fields.top_logprobs.value_or(0);
  return std::move(fields.wish);
}

}  // namespace braid::net::wish
