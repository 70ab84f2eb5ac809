// What a choice of an answer says, piece by piece: the one event stream that every dialect renders.
#pragma once

#include "braid/token_event.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace braid::net {

struct TextDelta {
  std::string text;  // UTF-8, whole characters; not empty
};

struct ReasoningDelta {
  std::string text;  // likewise; what the model thought before it answered
};

struct ToolCallBegin {
  std::uint32_t index = 0;  // of the call within its choice: 0, 1, 2 …
  std::string id;
  std::string name;
};

// Belongs to the call begun last. The pieces of one call join to the text of one JSON object.
struct ToolCallArguments {
  std::uint32_t index = 0;
  std::string text;  // not empty
};

using Delta = std::variant<TextDelta, ReasoningDelta, ToolCallBegin, ToolCallArguments>;

// The tokens behind deltas, each kept only if the call asks for it.
struct DeltaTokens {
  std::vector<TokenId> ids;
  std::vector<Token> scored;  // with log-probabilities

  void take(DeltaTokens& newer);  // moves those of `newer` behind these

  void clear() {
    ids.clear();
    scored.clear();
  }
};

enum class EndReason {
  kStop,        // the model ended, or a stop token came
  kStopString,  // `stop_string` was found
  kLength,      // max_tokens or the context is used up
  kToolCalls,   // the answer ended by one of these, and has calls
};

struct ChoiceEnd {
  EndReason reason = EndReason::kStop;
  std::string stop_string;                 // or the pattern that matched
  std::optional<TokenId> stop_token = {};  // the token that ended it, the model's own or one of the client's
  bool is_own_token = true;                // the former
};

// A piece of a choice that has not been sent yet, or all of it. Neighbours of one kind are joined. Tokens whose text is still held
// back wait here for it, so none is ever lost.
struct ChoicePiece {
  std::vector<Delta> deltas;
  DeltaTokens tokens;
  std::vector<std::size_t> scored_ends;  // take() only: of tokens.scored, how many there are up to the end of each delta

  // Moves the deltas of `newer` behind these, and its tokens with the first of them. Without deltas it keeps them for its next one.
  void take(ChoicePiece& newer);

  void clear() {
    deltas.clear();
    tokens.clear();
    scored_ends.clear();
  }
};

// Appends `delta` to `deltas`, joined with the last one where they are of one kind (and call). Drops what is empty.
void append_joined(std::vector<Delta>& deltas, Delta&& delta);

// All text of the answer itself, without reasoning and calls.
std::string answer_text(const std::vector<Delta>& deltas);

}  // namespace braid::net
