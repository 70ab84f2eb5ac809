// The text side of one choice: tokens become deltas, and stop strings end them.
#pragma once

#include <braid/text_codec.h>
#include <braid/token_event.h>
#include <net/generation/answer_event.h>
#include <net/generation/call.h>
#include <net/generation/stop_window.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace braid::net {

class ChoiceText {
 public:
  ChoiceText(const TextCodec& codec, const GenerationCall& call);

  // The end, when a stop string ends the choice here.
  std::optional<ChoiceEnd> add(Token&& token);

  // No token follows: releases the decoder's tail and what the stop window holds. `reason` is the engine's, kStop or kLength; a
  // stop string in that tail comes before it.
  ChoiceEnd finish(FinishReason reason);

  ChoicePiece& pending() { return pending_; }

 private:
  bool feed_text(std::string_view text);

  std::unique_ptr<StreamDecoder> decoder_;
  StopWindow window_;
  std::string piece_;  // reused
  ChoicePiece pending_;
  bool keep_ids_;
  bool keep_logprobs_;
};

}  // namespace braid::net
