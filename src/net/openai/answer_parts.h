// Pieces that the answers of both endpoints share.
#pragma once

#include <braid/text_codec.h>
#include <braid/token_event.h>
#include <net/generation/answer_event.h>
#include <net/generation/call.h>

#include <cstdint>
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
};

// {"id":…,"object":…,"created":…,"model":…,"choices":[
std::string answer_prefix(const AnswerIdentity& identity, std::string_view object);

std::string_view finish_name(EndReason reason);

// ,"token_ids":[…]
void append_token_ids(std::string& out, std::span<const TokenId> ids);

// ,"usage":{…}
void append_usage(std::string& out, const Usage& usage);

// The last events of a stream: the usage chunk if asked for, and [DONE].
void append_stream_end(std::string& out, std::string_view prefix, bool include_usage, const Usage& usage);

// {"token":…,"logprob":…,"bytes":[…],"top_logprobs":[…]} per token, comma-separated.
void append_logprob_entries(std::string& out, const TextCodec& codec, std::span<const Token> tokens);

// {"content":[{"token":…,"logprob":…,"bytes":[…],"top_logprobs":[…]}],"refusal":null}
void append_chat_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens);

// {"tokens":[…],"token_logprobs":[…],"top_logprobs":[…],"text_offset":[…]}; tokens that are not UTF-8 on their own are written
// "bytes:\xf0\x9f" as OpenAI does. `offset` is that of the first token in characters, and moves behind the last.
void append_completion_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens, std::size_t& offset);

}  // namespace braid::net::openai
