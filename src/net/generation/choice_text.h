// The text side of one choice: tokens become deltas, and stop strings end them.
#pragma once

#include "braid/text_codec.h"
#include "braid/token_event.h"
#include "net/generation/answer_event.h"
#include "net/generation/call.h"
#include "net/generation/parser/answer_parser.h"
#include "net/generation/stop_window.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

class ChoiceText {
 public:
  // `call` outlives it. Ids of tool calls depend on `id_seed`.
  ChoiceText(const TextCodec& codec, const GenerationCall& call, std::uint64_t id_seed);

  void add_prompt(PromptTokens&& tokens);

  // The end, when a stop string or the only call that is allowed ends the choice here.
  std::optional<ChoiceEnd> add(Token&& token);

  // No token follows: flushes the decoder's tail and what the stop window holds. `reason` is the engine's, kStop or kLength; a
  // stop string in that tail comes before it.
  ChoiceEnd finish(FinishReason reason);

  ChoicePiece& pending() { return pending_; }

  // Of the tokens so far, those that belong to the reasoning, its tags included.
  std::int32_t reasoning_tokens() const { return reasoning_tokens_; }
  std::vector<PromptToken>& prompt() { return prompt_; }
  bool begun() const { return tokens_ > 0; }
  double mean_logprob() const;

 private:
  void decode(TokenId token);
  bool is_stop(TokenId token) const;
  bool feed(std::string_view piece);
  bool settle(Delta&& delta);
  bool say(std::string_view text);
  std::optional<std::size_t> find_pattern(std::string_view text);
  void flush();
  bool in_reasoning() const { return parser_ != nullptr && parser_->in_reasoning(); }
  bool pending_is_text() const;
  bool has_calls() const { return parser_ != nullptr && parser_->has_calls(); }
  ChoiceEnd stopped_end() const;

  const GenerationCall& call_;
  const TextCodec& codec_;
  std::unique_ptr<StreamDecoder> decoder_;
  std::unique_ptr<AnswerParser> parser_;     // null: all is text
  std::vector<TextSearch::State> searches_;  // [call's stop_searches]
  StopWindow window_;                        // of the answer's text: reasoning and calls are never cut
  std::string matched_;                      // the pattern that ended the answer, or empty
  std::string piece_;                        // reused
  std::string held_control_;  // a control token's text, which is told when another token follows: the last one ends the answer
  bool after_control_ = false;
  TokenId last_token_ = -1;
  std::vector<Delta> parsed_;  // likewise
  ChoicePiece pending_;
  std::vector<PromptToken> prompt_;
  std::int32_t tokens_ = 0;
  std::int32_t reasoning_tokens_ = 0;
  double logprob_sum_ = 0.0;
};

}  // namespace braid::net
