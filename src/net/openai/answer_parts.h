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

std::string_view finish_name(EndReason reason);

// ,"token_ids":[…]
void append_token_ids(std::string& out, std::span<const TokenId> ids);

// What stands behind the choices of a document or chunk: usage, timings, service tier. Of the call, what is needed is copied.
class AnswerTail {
 public:
  explicit AnswerTail(const GenerationCall& call);

  // ],…} of a whole answer; `more` are further members, each with its comma before it.
  void append_whole(std::string& out, const Usage& usage, std::string_view more = {}) const;
  // ],…} and the end of the event.
  void append_chunk(std::string& out, const Usage& so_far) const;
  // The last events of a stream, which begin with `prefix`: the usage chunk if asked for, and [DONE].
  void append_stream_end(std::string& out, std::string_view prefix, const Usage& usage) const;

 private:
  void append_common(std::string& out, const Usage& usage) const;

  bool usage_;
  bool continuous_;
  bool timings_;
  std::string tier_;  // ,"service_tier":… or empty
};

// A token with its log-probability; the first one of a prompt has none.
struct ScoredToken {
  TokenId id = 0;
  std::optional<float> logprob;
  std::span<const TokenLogprob> top;  // best first
  std::size_t offset = 0;             // characters before it
};

// {"content":[{"token":…,"logprob":…,"bytes":[…],"top_logprobs":[…]}],"refusal":null}
void append_chat_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens);

// {"tokens":[…],"token_logprobs":[…],"top_logprobs":[…],"text_offset":[…]}; tokens that are not UTF-8 on their own are written
// "bytes:\xf0\x9f" as OpenAI does.
void append_completion_logprobs(std::string& out, const TextCodec& codec, std::span<const ScoredToken> tokens);

// Adds `tokens` of an answer. `offset` is that of the first one in characters, and moves behind the last.
void add_answer_tokens(std::vector<ScoredToken>& out, const TextCodec& codec, std::span<const Token> tokens, std::size_t& offset);

// Adds the tokens of a prompt that is `text`, each with its `best` best alternatives. Returns the characters of `text`.
std::size_t add_prompt_tokens(std::vector<ScoredToken>& out, const TextCodec& codec, std::span<const PromptToken> tokens,
                              std::string_view text, std::size_t best);

// ,"prompt_logprobs":[null,{"<id>":{"logprob":…,"rank":…,"decoded_token":…}}] as vLLM has it; the rank is null beyond the best.
void append_prompt_logprobs(std::string& out, const TextCodec& codec, std::span<const PromptToken> tokens, std::size_t best);

}  // namespace braid::net::openai
