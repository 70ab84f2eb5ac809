// Text to tokens and back, and the model's chat template. Implemented by `model`, used by `net`.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/value.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

struct EncodeOptions {
  bool add_special = true;                    // BOS/EOS as the model's metadata asks
  bool parse_special = false;                 // whether "<|im_end|>" in the text becomes the control token
  std::span<const std::size_t> literal = {};  // offsets, ascending, where it does not
};

// A conversation as the model is to read it. `literal`, for EncodeOptions, are the places where a client's own words spell a control
// token: they stay words.
struct RenderedChat {
  std::string text;
  std::vector<std::size_t> literal;
};

// Variables of a chat template. `messages`, `tools` are JSON-shaped as in OpenAI's API.
struct ChatPrompt {
  Value messages;
  Value tools;  // null: none
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the text ends right after the last message's content
  Value kwargs;                         // further template variables (a dict), or null
  std::string template_text = {};       // that is rendered in place of the model's own; empty: none
};

// How a model marks a gap to be filled: `prefix` before the text that precedes it, `suffix` before the text behind it, and `middle`
// where the answer begins.
struct InfillTokens {
  std::optional<TokenId> begin;  // of every text, where the model wants one
  TokenId prefix = 0;
  TokenId suffix = 0;
  TokenId middle = 0;
};

struct TokenRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Two texts as one prompt.
struct EncodedPair {
  std::vector<TokenId> tokens;
  std::int32_t second_text = 0;  // GenerationRequest's: 0 where the model does not tell them apart by types
  TokenRange second;             // what the second text is in them, without what parts the two and what ends them
};

// Tokens that begin and end texts, and whether encode() adds them by itself.
struct TextEnds {
  std::optional<TokenId> bos = {};
  std::optional<TokenId> eos = {};
  bool adds_bos = false;
  bool adds_eos = false;
};

// Incremental decoding of one sequence: appends whole UTF-8 characters only and keeps an unfinished tail.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  virtual void append(TokenId token, std::string& out) = 0;
  // The tail at the end of the sequence; incomplete bytes become U+FFFD.
  virtual void finish(std::string& out) = 0;
};

// Immutable after construction: every member may be called from any thread.
class TextCodec {
 public:
  virtual ~TextCodec() = default;

  virtual std::int32_t vocab_size() const = 0;

  virtual Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const = 0;

  // As the tokenizer joins two texts for a model that reads pairs. kInvalidArgument: it cannot.
  virtual Result<EncodedPair> encode_pair(std::string_view /*first*/, std::string_view /*second*/) const {
    return invalid_argument("this model's tokenizer does not join two texts");
  }
  // How many tokens encode() with add_special and encode_pair() put behind the last text.
  virtual std::size_t closing_tokens() const { return text_ends().adds_eos ? 1 : 0; }

  // kInvalidArgument with construct and line when the template fails; "model has no chat template" when there is none.
  virtual Result<RenderedChat> render(const ChatPrompt& prompt) const = 0;

  virtual TextEnds text_ends() const = 0;

  // None when the model was not trained to fill gaps.
  virtual std::optional<InfillTokens> infill_tokens() const = 0;

  // The source of the template that render() uses for this prompt, which tells how the model writes calls and reasoning; empty when
  // there is none. Valid as long as the codec and the prompt.
  virtual std::string_view template_source(const ChatPrompt& prompt) const = 0;

  // A decoder for generated text. Control tokens (end of sequence, <|im_end|>) decode to nothing.
  virtual std::unique_ptr<StreamDecoder> new_decoder() const = 0;

  // Whether the token is no part of an answer's text: new_decoder() makes nothing of it.
  virtual bool is_silent(TokenId token) const = 0;

  // The bytes of one token, as log-probability reports show them (not necessarily valid UTF-8 on its own).
  virtual std::string token_bytes(TokenId token) const = 0;
};

}  // namespace braid
