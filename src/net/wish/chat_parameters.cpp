// What chats take whatever the form of their messages: template variables, reasoning, log-probabilities.
#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::wish {
namespace {

Result<void> read_chat_logprobs(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.logprobs = *wanted;
  return {};
}

Result<void> read_template_kwargs(BodyFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  fields.chat.kwargs = std::move(value);
  return {};
}

Result<void> read_add_generation_prompt(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.add_generation_prompt = *wanted;
  return {};
}

Result<void> read_continue_final_message(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.chat.continue_final_message = *wanted;
  return {};
}

Result<void> read_verbosity(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::string> verbosity = json::read_string(value, path);
  if (!verbosity) return verbosity.error();
  if (*verbosity != "low" && *verbosity != "medium" && *verbosity != "high")
    return invalid_argument(fmt::format("'{}' must be one of 'low', 'medium' and 'high'", path), path);
  fields.verbosity = std::move(*verbosity);
  return {};
}

// What the template shows as texts to answer from.
Result<void> read_documents(BodyFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueList>() == nullptr) return json::wrong_type(path, "an array", value);
  fields.documents = std::move(value);
  return {};
}

// In place of the messages, as a template would write them.
Result<void> read_prompt_ids(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::vector<TokenId>> ids = read_token_ids(value, path, fields.model);
  if (!ids) return ids.error();
  if (ids->empty()) return invalid_argument(fmt::format("'{}' is empty: it gives no token to start from", path), path);
  fields.wish.prompt_ids = std::move(*ids);
  return {};
}

constexpr std::array kChat = {
    Parameter{"prompt_token_ids", read_prompt_ids},
    Parameter{"documents", read_documents},
    Parameter{"logprobs", read_chat_logprobs},
    Parameter{"top_logprobs", read_top_logprobs},
    Parameter{"chat_template_kwargs", read_template_kwargs},
    Parameter{"add_generation_prompt", read_add_generation_prompt},
    Parameter{"continue_final_message", read_continue_final_message},
    Parameter{"reasoning_effort", read_reasoning_effort},
    Parameter{"verbosity", read_verbosity},
    Parameter{"thinking_budget", CountRule<Wish>{&Wish::thinking_budget, 0}},
    Parameter{"reasoning_budget", CountRule<Wish>{&Wish::thinking_budget, -1}},
    Parameter{"reasoning_budget_tokens", CountRule<Wish>{&Wish::thinking_budget, -1}},
    Parameter{"thinking_token_budget", CountRule<Wish>{&Wish::thinking_budget, -1}},
};

}  // namespace

Result<void> read_top_logprobs(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, 0, kMaxTopLogprobs);
  if (!count) return count.error();
  fields.top_logprobs = static_cast<std::int32_t>(*count);
  return {};
}

Result<void> read_reasoning_effort(BodyFields& fields, Value& value, const std::string& path) {
  static constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
  Result<std::string> effort = json::read_string(value, path);
  if (!effort) return effort.error();
  if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end())
    return invalid_argument(fmt::format("'{}' must be one of '{}'", path, fmt::join(kEfforts, "', '")), path);
  fields.reasoning_effort = std::move(*effort);
  return {};
}

std::span<const Parameter> chat_parameters() { return kChat; }

ValueList unread_messages() { return {ValueDict{{"role", "user"}, {"content", ""}}}; }

Tables chat_tables() {
  static const std::array tables = {chat_parameters(),  common_parameters(),      sampling_parameters(),     structured_output_parameters(),
                                    token_parameters(), speculation_parameters(), other_server_parameters(), refused_parameters()};
  return tables;
}

Tables foreign_tables() {
  static const std::array tables = {
      untold_parameters(), chat_parameters(),         common_parameters(), sampling_parameters(), structured_output_parameters(),
      token_parameters(),  other_server_parameters(), refused_parameters()};
  return tables;
}

}  // namespace braid::net::wish
