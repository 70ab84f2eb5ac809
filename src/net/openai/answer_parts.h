// Pieces that the answers of both endpoints share.
#pragma once

#include "braid/text_codec.h"
#include "braid/token_event.h"
#include "net/generation/answer_event.h"
#include "net/generation/call.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net::openai {

// What the chunks of one answer have in common.
struct AnswerIdentity {
  std::string id;            // "cmpl-…" or "chatcmpl-…"
  std::int64_t created = 0;  // Unix seconds
  std::string model;
  std::string fingerprint;  // empty: not said
};

// {"id":…,"object":…,"created":…,"model":…,"system_fingerprint":…,"choices":[
std::string answer_prefix(const AnswerIdentity& identity, std::string_view object);

// {"index":…, with which a choice of a document or chunk begins. Each token has one, and a format string is read again each time.
void append_choice_index(std::string& out, std::uint32_t choice);

std::string_view finish_name(EndReason reason);

// ,"token_ids":[…]
void append_token_ids(std::string& out, std::span<const TokenId> ids);
// ,"prompt_token_ids":[…]
void append_prompt_token_ids(std::string& out, std::span<const TokenId> ids);

// ,"stop_reason":…,"matched_stop":… as vLLM and SGLang tell what ended a choice: a string, a token, or null. For vLLM the model's own
// end is none.
void append_stop_reason(std::string& out, const ChoiceEnd& end);

// What stands behind the choices of a document or chunk: usage, timings, service tier. Of the call, what is needed is copied.
class AnswerTail {
 public:
  explicit AnswerTail(const GenerationCall& call);

  // ],…} of a whole answer; `more` are further members, each with its comma before it.
  void append_whole(std::string& out, const Usage& usage, std::string_view more = {}) const;
  // ],…} and the end of the event; `last`: of the one that ends a choice.
  void append_chunk(std::string& out, const Usage& so_far, bool last, std::string_view more = {}) const;
  // The last events of a stream, which begin with `prefix`: the usage chunk if asked for, and [DONE].
  void append_stream_end(std::string& out, std::string_view prefix, const Usage& usage) const;

 private:
  void append_common(std::string& out, const Usage& usage, bool end) const;

  bool usage_;
  bool continuous_;
  bool timings_;
  bool timings_per_token_;
  std::string tier_;  // ,"service_tier":… or empty
};

// A token with its log-probability; the first one of a prompt has none.
struct ScoredToken {
  TokenId id = 0;
  std::optional<float> logprob;
  std::span<const TokenLogprob> top;  // best first
  std::size_t offset = 0;             // characters before it
};

// llama-server's return_progress: chunks without choices that begin with `prefix`, one before the prompt is computed and one after.
class PromptProgress {
 public:
  explicit PromptProgress(const GenerationCall& call) : wanted_(call.stream && call.prompt_progress) {}

  void append_begin(std::string& out, std::string_view prefix, const Usage& so_far);
  void append_end(std::string& out, std::string_view prefix, const Usage& so_far);  // before the first token; again it does nothing

 private:
  void append(std::string& out, std::string_view prefix, const Usage& so_far, std::int32_t processed) const;

  bool wanted_;
};

// {"content":[{"token":…,"logprob":…,"bytes":[…],"top_logprobs":[…]}],"refusal":null}
void append_chat_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens, bool as_ids);

// {"tokens":[…],"token_logprobs":[…],"top_logprobs":[…],"text_offset":[…]}; tokens that are not UTF-8 on their own are written
// "bytes:\xf0\x9f" as OpenAI does, and with `as_ids` all are called token_id:7.
void append_completion_logprobs(std::string& out, const TextCodec& codec, std::span<const ScoredToken> tokens, bool as_ids);

// Adds `tokens` of an answer. `offset` is that of the first one in characters, and moves behind the last.
void add_answer_tokens(std::vector<ScoredToken>& out, const TextCodec& codec, std::span<const Token> tokens, std::size_t& offset);

// Adds the tokens of a prompt that is `text`, each with its `best` best alternatives. Returns the characters of `text`.
std::size_t add_prompt_tokens(std::vector<ScoredToken>& out, const TextCodec& codec, std::span<const PromptToken> tokens,
                              std::string_view text, std::size_t best);

// ,"prompt_logprobs":[null,{"<id>":{"logprob":…,"rank":…,"decoded_token":…}}] as vLLM has it; the rank is null beyond the best.
void append_prompt_logprobs(std::string& out, const TextCodec& codec, std::span<const PromptToken> tokens, std::size_t best);

}  // namespace braid::net::openai
