#include <fmt/format.h>
#include <net/json/write.h>
#include <net/openai/answer_parts.h>

#include <algorithm>
#include <iterator>

namespace braid::net::openai {
namespace {

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = json::utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string printable_token(const TextCodec& codec, TokenId id) {
  std::string bytes = codec.token_bytes(id);
  if (is_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes)
    fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text;
}

// "token":…,"logprob":…,"bytes":[…]
void append_chat_token(std::string& out, const TextCodec& codec, TokenId id, float logprob) {
  const std::string bytes = codec.token_bytes(id);
  out += R"("token":)";
  json::append_lossy_string(out, bytes);
  out += R"(,"logprob":)";
  json::append_float(out, logprob);
  out += R"(,"bytes":[)";
  for (std::size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  out += ']';
}

// One object from token to log-probability: the best ones, and the sampled one if it is not among them.
void append_top_object(std::string& out, const TextCodec& codec, const Token& token) {
  std::vector<std::string> written;
  const auto append = [&](TokenId id, float logprob) {
    std::string name = printable_token(codec, id);
    if (std::find(written.begin(), written.end(), name) != written.end()) return;  // JSON keys are unique
    if (!written.empty()) out += ',';
    json::append_string(out, name);
    out += ':';
    json::append_float(out, logprob);
    written.push_back(std::move(name));
  };
  out += '{';
  for (const TokenLogprob& best : token.top) append(best.id, best.logprob);
  append(token.id, token.logprob);
  out += '}';
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// `,`-separated values of all tokens, written by `append_one`.
template <class AppendOne>
void append_each(std::string& out, std::span<const Token> tokens, AppendOne append_one) {
  out += '[';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    append_one(tokens[i]);
  }
  out += ']';
}

}  // namespace

std::string answer_prefix(const AnswerIdentity& identity, std::string_view object) {
  std::string prefix = fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":)", identity.id, object, identity.created);
  json::append_lossy_string(prefix, identity.model);
  prefix += R"(,"choices":[)";
  return prefix;
}

std::string_view finish_name(EndReason reason) {
  if (reason == EndReason::kLength) return "length";
  return reason == EndReason::kToolCalls ? "tool_calls" : "stop";
}

void append_token_ids(std::string& out, std::span<const TokenId> ids) {
  fmt::format_to(std::back_inserter(out), R"(,"token_ids":[{}])", fmt::join(ids, ","));
}

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 R"(,"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                 R"("prompt_tokens_details":{{"cached_tokens":{}}}}})",
                 usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens);
}

void append_stream_end(std::string& out, std::string_view prefix, bool include_usage, const Usage& usage) {
  if (include_usage) {
    out.append("data: ").append(prefix).append("]");
    append_usage(out, usage);
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

void append_logprob_entries(std::string& out, const TextCodec& codec, std::span<const Token> tokens) {
  for (std::size_t entry = 0; entry < tokens.size(); ++entry) {
    const Token& token = tokens[entry];
    out += entry > 0 ? ",{" : "{";
    append_chat_token(out, codec, token.id, token.logprob);
    out += R"(,"top_logprobs":[)";
    for (std::size_t i = 0; i < token.top.size(); ++i) {
      out += i > 0 ? ",{" : "{";
      append_chat_token(out, codec, token.top[i].id, token.top[i].logprob);
      out += '}';
    }
    out += "]}";
  }
}

void append_chat_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens) {
  out += R"({"content":[)";
  append_logprob_entries(out, codec, tokens);
  out += R"(],"refusal":null})";
}

void append_completion_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens, std::size_t& offset) {
  out += R"({"tokens":)";
  append_each(out, tokens, [&](const Token& token) { json::append_string(out, printable_token(codec, token.id)); });
  out += R"(,"token_logprobs":)";
  append_each(out, tokens, [&](const Token& token) { json::append_float(out, token.logprob); });
  out += R"(,"top_logprobs":)";
  append_each(out, tokens, [&](const Token& token) { append_top_object(out, codec, token); });
  out += R"(,"text_offset":)";
  append_each(out, tokens, [&](const Token& token) {
    fmt::format_to(std::back_inserter(out), "{}", offset);
    if (!codec.is_silent(token.id)) offset += count_characters(codec.token_bytes(token.id));
  });
  out += '}';
}

}  // namespace braid::net::openai
