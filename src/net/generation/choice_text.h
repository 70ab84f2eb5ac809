// The text side of one choice: tokens become text, stop strings end it, and what belongs to text not yet sent is kept with it.
#pragma once

#include <braid/text_codec.h>
#include <braid/token_event.h>
#include <net/generation/call.h>
#include <net/generation/stop_window.h>

#include <memory>
#include <string>
#include <vector>

namespace braid::net {

// What has not been sent yet. Tokens whose text is still incomplete wait here for the next chunk, so none is ever lost.
struct Pending {
  std::string text;
  std::vector<TokenId> token_ids;  // if the call asks for them
  std::vector<Token> logprobs;     // likewise

  void clear() {
    text.clear();
    token_ids.clear();
    logprobs.clear();
  }
};

class ChoiceText {
 public:
  ChoiceText(const TextCodec& codec, const GenerationCall& call);

  // True when a stop string ends the choice here.
  bool add(Token&& token);

  // No token follows: releases the decoder's tail and what the stop window holds. True when that tail made up a stop string.
  bool finish();

  Pending& pending() { return pending_; }

 private:
  std::unique_ptr<StreamDecoder> decoder_;
  StopWindow window_;
  std::string piece_;  // reused
  Pending pending_;
  bool keep_ids_;
  bool keep_logprobs_;
};

}  // namespace braid::net
