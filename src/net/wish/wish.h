// What a dialect's reader makes of a request body: the prompts, still as text or messages, and everything about the answer.
#pragma once

#include "braid/constraint.h"
#include "braid/generation_request.h"
#include "braid/text_codec.h"
#include "net/wish/images.h"
#include "net/wish/tool_rules.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::net {

using PromptItem = std::variant<std::string, std::vector<TokenId>>;

// What a dialect's own format wants to know of the body, beyond what is in the wish.
class DialectDetails {
 public:
  virtual ~DialectDetails() = default;
};

// What a model is asked about each whole answer, its prompt included, before it is told.
struct Review {
  enum class What : std::uint8_t {
    kLogprobs,  // of its tokens
    kVectors,   // their last hidden states
    kScores,    // what the model's head makes of these
  };
  What what = What::kLogprobs;
  std::string model = {};  // by whose adapters; empty: the answer's own
  std::string field = {};  // where that stood, for errors
};

// Words around each item, which are no part of it: it is cut between them.
struct ItemFrame {
  std::vector<std::string> before;  // [items]
  std::string behind;
};

struct Wish {
  std::variant<std::vector<PromptItem>, ChatPrompt> prompt;  // a chat is one prompt, each item is one
  std::vector<wish::ShownImage> images;                      // chats: whose content parts name them by number
  std::string_view prompt_field = "prompt";                  // where it came from, for errors
  std::optional<std::string> suffix;                         // the answer fills the gap between an item and this
  std::optional<std::string> said_at_once;                   // the whole answer, JSON, where nothing is to be generated
  std::int32_t choices = 1;                                  // for each prompt
  std::int32_t candidates = 1;  // generated for each prompt, at least `choices`: the best by mean log-probability are answered
  SamplingParams sampling;      // `choice` is set per choice; `seed` only if `seeded`
  bool seeded = false;
  StopRules stop;                          // its max_tokens is replaced by the member below
  std::optional<std::int32_t> max_tokens;  // nullopt: the rest of the context
  std::vector<std::string> stop_strings;
  bool include_stop_string = false;        // in the text
  std::vector<std::string> stop_patterns;  // regular expressions; the answer ends with what one of them matches first
  std::optional<ConstraintSpec> constraint_spec;
  std::vector<TokenId> allowed_tokens;                 // the answer has no others; empty: all
  std::vector<std::vector<TokenId>> banned_sequences;  // none of them comes to its last token
  std::optional<std::int32_t> prompt_tail;  // of each prompt so many tokens at most, its last ones; -1: as many as there is room for
  std::optional<std::int32_t> prompt_head;  // of each prompt so many tokens at most: its first ones and those that close every text; -1: as
                                            // many as there is room for
  std::vector<std::string> second_texts;    // of each item that is one of two texts, the other; empty: none is
  std::optional<ItemFrame> frame;           // around items, which are texts then
  std::vector<ChatPrompt> chats;            // several chats, each a prompt: they become `prompt` when they are rendered
  bool cuts_prompt_end = false;             // of each prompt, what the context has no room for
  std::vector<TokenId> prompt_ids;          // a chat's prompt in place of its messages; empty: none
  std::vector<TokenId> context;             // what a chat's prompt goes on from; empty: it begins
  std::optional<bool> add_special;          // whether a prompt gets the model's own BOS and EOS; nullopt: a text does, a chat does not
  bool control_text = false;                // control tokens are part of the answer's text
  bool control_spaces = false;              // with a space between two of them
  bool tokens_as_ids = false;               // in log-probabilities a token is called token_id:7
  std::int32_t thinking_budget = -1;        // tokens of reasoning until it is closed; -1: no limit
  std::int32_t prompt_logprobs = -1;        // as in Request, for an own member of the answer
  std::optional<std::int32_t> priority;     // as in Request; nullopt: what the client's requests have
  bool is_urgent = false;                   // without a priority: some ranks before them, because somebody waits to act on the answer
  Pooling pooling = Pooling::kNone;         // as in GenerationRequest: vectors instead of answers
  PooledOutput pooled_output = PooledOutput::kVector;
  std::int32_t task = 0;                   // likewise
  std::vector<std::int32_t> marked_turns;  // chats: as in GenerationRequest
  Speculation speculation;                 // as in Request, but for its prediction
  std::string prediction;                  // what the answer may consist of; empty: nothing is known
  std::string cache_salt;                  // as in Request
  std::string service_tier;                // as it was asked for; empty: not at all
  bool echo = false;                       // each choice begins with its prompt
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool timings = false;            // in the end
  bool timings_per_token = false;  // in each chunk of a stream
  bool prompt_progress = false;    // a stream tells when the prompt's computation begins and ends
  bool reads_cache = true;         // cached prefixes
  bool hides_reasoning = false;    // it is generated and not told
  bool return_token_ids = false;
  bool tells_revisions = false;   // as in GenerationRequest
  bool scores_text_only = false;  // of the answer's tokens, reasoning, calls and markers have no log-probabilities

  std::vector<std::string> tools_left_out;  // chats: those declared that only a provider's server could run
  std::vector<std::string> schema_ignored;  // paths of what its schemas and forms say and is not kept
  std::vector<std::string> items_left_out;  // chats: kinds of what its history has and no model can read
  bool drops_oldest_turns = false;          // chats: of a conversation that is too long, instead of refusing it

  std::optional<ToolRules> tools;                 // chats: nothing when none may be called
  std::vector<Review> reviews;                    // of answers that are not streamed, with return_token_ids
  std::shared_ptr<const DialectDetails> details;  // null for the dialects that need none

  bool wants_constraint() const {
    return constraint_spec ||
           (tools && (tools->required || std::ranges::any_of(tools->functions, [](const ToolFunction& one) { return one.strict; })));
  }
  bool wants_logprobs() const { return sampling.top_logprobs >= 0; }
};

}  // namespace braid::net
