// The parameters of a generation, each with its range: one table per endpoint from field name to reader.
#pragma once

#include <braid/result.h>
#include <braid/served_model.h>
#include <braid/value.h>
#include <net/generation/call.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid::net::openai {

// What is read before it is known how the fields belong together.
struct Draft {
  explicit Draft(const ServedModel& served) : model(served) {}

  const ServedModel& model;
  GenerationCall call;
  std::optional<std::int32_t> max_completion_tokens;
  bool logprobs = false;                     // the chat form's switch
  std::optional<std::int32_t> top_logprobs;  // the chat form's count
  bool has_stream_options = false;
  std::optional<Value> messages;                  // chat
  ChatPrompt chat;                                // but for its messages
  std::optional<std::vector<PromptItem>> prompt;  // completions
};

// Reads one field that is not null into the draft. May move out of `value`.
using Reader = Result<void> (*)(Draft& draft, Value& value, const std::string& path);

struct Parameter {
  std::string_view name;
  Reader read;
};

// What both endpoints take.
std::span<const Parameter> common_parameters();

// Parameters of OpenAI or of its imitators that would change the answer and are not served: refused unless they ask for nothing.
std::span<const Parameter> refused_parameters();

// Applies the first of `tables` that knows each member of `body`; null members are left out.
Result<void> read_parameters(Draft& draft, ValueDict& body, std::span<const std::span<const Parameter>> tables);

// A list of token ids, each within the vocabulary.
Result<std::vector<TokenId>> read_token_ids(const Value& value, const std::string& path, const ServedModel& model);

}  // namespace braid::net::openai
