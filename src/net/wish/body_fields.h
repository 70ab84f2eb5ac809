// What has been read of a body before it is known how the fields belong together.
#pragma once

#include "braid/served_model.h"
#include "braid/text_codec.h"
#include "braid/value.h"
#include "net/wish/defaults.h"
#include "net/wish/tool_rules.h"
#include "net/wish/wish.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::net::wish {

// Which of the declared functions a chat may call.
struct ToolChoice {
  enum class Mode { kAuto, kNone, kRequired };

  Mode mode = Mode::kAuto;
  std::optional<std::vector<std::string>> names;  // only these
  bool parallel = true;
};

struct BodyFields {
  explicit BodyFields(const ServedModel& served) : model(served) { set_defaults(wish, served.defaults); }

  const ServedModel& model;
  Wish wish;
  std::optional<std::int32_t> max_completion_tokens;
  std::optional<std::int32_t> best_of;
  std::optional<std::int32_t> priority;      // by number; wins over the service tier's
  bool logprobs = false;                     // the chat form's switch
  std::optional<std::int32_t> top_logprobs;  // the chat form's count
  bool has_stream_options = false;
  std::optional<std::vector<std::string>> dry_breakers;  // as text
  std::vector<std::string> bad_words;                    // likewise
  std::optional<std::vector<std::string>> samplers;      // by their long names, in order
  std::optional<Value> messages;                         // chat
  std::vector<ToolFunction> functions;                   // chat: of the declared tools
  ToolChoice tool_choice;                                // chat
  ChatPrompt chat;                                       // but for its messages
  std::optional<bool> add_generation_prompt;             // chat
  std::string reasoning_effort;                          // chat
  Value documents;                                       // chat: for the template
  std::string verbosity;                                 // chat: for the template
  std::optional<bool> thinks;                            // chat
  std::optional<std::vector<PromptItem>> prompt;         // completions
};

}  // namespace braid::net::wish
