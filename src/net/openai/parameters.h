// The parameters of a generation, each with its range: one row of a table from field name to rule.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/call.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::net::openai {

// Which of the declared functions a chat may call.
struct ToolChoice {
  enum class Mode { kAuto, kNone, kRequired };

  Mode mode = Mode::kAuto;
  std::optional<std::vector<std::string>> names;  // only these
  bool parallel = true;
};

// What is read before it is known how the fields belong together.
struct Draft {
  explicit Draft(const ServedModel& served) : model(served) {}

  const ServedModel& model;
  GenerationCall call;
  std::optional<std::int32_t> max_completion_tokens;
  std::optional<std::int32_t> best_of;
  std::optional<std::int32_t> priority;      // by number; wins over the service tier's
  bool logprobs = false;                     // the chat form's switch
  std::optional<std::int32_t> top_logprobs;  // the chat form's count
  bool has_stream_options = false;
  std::optional<std::vector<std::string>> dry_breakers;  // as text
  std::optional<Value> messages;                         // chat
  std::vector<ToolFunction> functions;                   // chat: of the declared tools
  ToolChoice tool_choice;                                // chat
  ChatPrompt chat;                                       // but for its messages
  std::optional<bool> add_generation_prompt;             // chat
  std::string reasoning_effort;                          // chat
  std::optional<std::vector<PromptItem>> prompt;         // completions
};

// Reads one field that is not null into the draft. May move out of `value`.
using Reader = Result<void> (*)(Draft& draft, Value& value, const std::string& path);

// A number from `low`, or above it, to `high`.
struct NumberRule {
  float SamplingParams::*field;
  float low;
  float high;
  bool above_low = false;
};

// An integer from `low` to `high`. Without a limit above, what exceeds 32 bits means as much as the largest.
template <class Owner>
struct CountRule {
  std::int32_t Owner::*field;
  std::int32_t low;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

struct FlagRule {
  bool GenerationCall::*field;
};

struct Parameter {
  std::string_view name;
  std::variant<Reader, NumberRule, CountRule<SamplingParams>, CountRule<GenerationCall>, FlagRule> rule;
};

inline constexpr std::int32_t kMaxChoices = 128;  // for each prompt, as at OpenAI

// What one endpoint takes beside what both take.
std::span<const Parameter> completion_parameters();
std::span<const Parameter> chat_parameters();

// What both endpoints take, by subject.
std::span<const Parameter> common_parameters();
std::span<const Parameter> sampling_parameters();
std::span<const Parameter> structured_output_parameters();

// Of chats: tools, and how they may be used.
std::span<const Parameter> tool_parameters();

// Once all fields are read: the tools of the call and of the prompt.
Result<void> finish_tools(Draft& draft);

// The texts of draft.dry_breakers, or the default ones, as tokens of the call; only where the call uses them.
Result<void> encode_breakers(Draft& draft);

// Parameters of OpenAI or of its imitators that would change the answer and are not served: refused unless they ask for nothing.
std::span<const Parameter> refused_parameters();

// Applies the first of `tables` that knows each member of `body`; null members are left out.
Result<void> read_parameters(Draft& draft, ValueDict& body, std::span<const std::span<const Parameter>> tables);

// A list of token ids, each within the vocabulary.
Result<std::vector<TokenId>> read_token_ids(const Value& value, const std::string& path, const ServedModel& model);

}  // namespace braid::net::openai
