#include "net/openai/answer_parts.h"

#include "net/generation/answering_model.h"
#include "net/generation/logprob_entries.h"
#include "net/generation/timings.h"
#include "net/json/write.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace braid::net::openai {
namespace {

std::string printable_token(const TextCodec& codec, TokenId id, bool as_ids) {
  if (as_ids) return name_by_id(id);
  std::string bytes = codec.token_bytes(id);
  if (json::is_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text;
}

// One object from token to log-probability: the best ones, and the sampled one if it is not among them; null without any.
void append_top_object(std::string& out, const TextCodec& codec, const ScoredToken& token, bool as_ids) {
  if (!token.logprob) {
    out += "null";
    return;
  }
  std::vector<std::string> written;
  const auto append = [&](TokenId id, float logprob) {
    std::string name = printable_token(codec, id, as_ids);
    if (std::find(written.begin(), written.end(), name) != written.end()) return;  // JSON keys are unique
    if (!written.empty()) out += ',';
    json::append_string(out, name);
    out += ':';
    json::append_float(out, logprob);
    written.push_back(std::move(name));
  };
  out += '{';
  for (const TokenLogprob& best : token.top) append(best.id, best.logprob);
  append(token.id, *token.logprob);
  out += '}';
}

// `,`-separated values of all tokens, written by `append_one`.
template <class Tokens, class AppendOne>
void append_each(std::string& out, const Tokens& tokens, AppendOne append_one) {
  out += '[';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    append_one(tokens[i]);
  }
  out += ']';
}

// "<id>":{"logprob":…,"rank":…,"decoded_token":…}
void append_ranked(std::string& out, const TextCodec& codec, TokenId id, float logprob, std::optional<std::size_t> rank) {
  fmt::format_to(std::back_inserter(out), R"("{}":{{"logprob":)", id);
  json::append_float(out, logprob);
  fmt::format_to(std::back_inserter(out), R"(,"rank":{},"decoded_token":)", rank ? std::to_string(*rank) : "null");
  json::append_lossy_string(out, codec.token_bytes(id));
  out += '}';
}

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 R"(,"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                 R"("prompt_tokens_details":{{"cached_tokens":{}}})",
                 usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens);
  const bool has_drafts = usage.accepted_drafts + usage.rejected_drafts > 0;
  if (usage.reasoning_tokens > 0 || has_drafts)
    fmt::format_to(std::back_inserter(out), R"(,"completion_tokens_details":{{"reasoning_tokens":{})", usage.reasoning_tokens);
  if (has_drafts)
    fmt::format_to(std::back_inserter(out), R"(,"accepted_prediction_tokens":{},"rejected_prediction_tokens":{})", usage.accepted_drafts,
                   usage.rejected_drafts);
  if (usage.reasoning_tokens > 0 || has_drafts) out += '}';
  if (usage.weight_changes > 0) fmt::format_to(std::back_inserter(out), R"(,"weight_changes":{})", usage.weight_changes);
  out += '}';
}

}  // namespace

std::string answer_prefix(const AnswerIdentity& identity, std::string_view object) {
  std::string prefix = fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":)", identity.id, object, identity.created);
  json::append_lossy_string(prefix, identity.model);
  append_fingerprint(prefix, identity.fingerprint);
  prefix += R"(,"choices":[)";
  return prefix;
}

void append_choice_index(std::string& out, std::uint32_t choice) {
  const fmt::format_int index(choice);
  out += R"({"index":)";
  out.append(index.data(), index.size());
  out += ',';
}

std::string_view finish_name(EndReason reason) {
  if (reason == EndReason::kLength) return "length";
  return reason == EndReason::kToolCalls ? "tool_calls" : "stop";
}

void append_token_ids(std::string& out, std::span<const TokenId> ids) {
  fmt::format_to(std::back_inserter(out), R"(,"token_ids":[{}])", fmt::join(ids, ","));
}

void append_prompt_token_ids(std::string& out, std::span<const TokenId> ids) {
  fmt::format_to(std::back_inserter(out), R"(,"prompt_token_ids":[{}])", fmt::join(ids, ","));
}

void append_stop_reason(std::string& out, const ChoiceEnd& end) {
  std::string matched = "null";
  if (!end.stop_string.empty()) {
    matched = json::quoted(end.stop_string);
  } else if (end.stop_token) {
    matched = fmt::to_string(*end.stop_token);
  }
  const bool is_own = end.stop_string.empty() && end.is_own_token;
  fmt::format_to(std::back_inserter(out), R"(,"stop_reason":{},"matched_stop":{})", is_own ? "null" : matched, matched);
}

AnswerTail::AnswerTail(const GenerationCall& call)
    : usage_(call.include_usage || call.continuous_usage), continuous_(call.continuous_usage), timings_(call.timings),
      timings_per_token_(call.timings_per_token) {
  if (call.service_tier.empty()) return;
  tier_ = R"(,"service_tier":)";
  json::append_string(tier_, call.service_tier == "auto" ? "default" : call.service_tier);
}

void AnswerTail::append_common(std::string& out, const Usage& usage, bool end) const {
  if (timings_per_token_ || (timings_ && end)) append_timings(out, usage);
  out += tier_;
}

void AnswerTail::append_whole(std::string& out, const Usage& usage, std::string_view more) const {
  out += ']';
  append_usage(out, usage);
  append_common(out, usage, true);
  out.append(more).append("}");
}

void AnswerTail::append_chunk(std::string& out, const Usage& so_far, bool last, std::string_view more) const {
  out += ']';
  if (continuous_) {
    append_usage(out, so_far);
  } else if (usage_) {
    out += R"(,"usage":null)";
  }
  append_common(out, so_far, last);
  out.append(more).append("}\n\n");
}

void AnswerTail::append_stream_end(std::string& out, std::string_view prefix, const Usage& usage) const {
  if (usage_) {
    out.append("data: ").append(prefix).append("]");
    append_usage(out, usage);
    append_common(out, usage, true);
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

void PromptProgress::append_begin(std::string& out, std::string_view prefix, const Usage& so_far) {
  if (wanted_) append(out, prefix, so_far, 0);
}

void PromptProgress::append_end(std::string& out, std::string_view prefix, const Usage& so_far) {
  if (std::exchange(wanted_, false)) append(out, prefix, so_far, so_far.prompt_tokens);
}

void PromptProgress::append(std::string& out, std::string_view prefix, const Usage& so_far, std::int32_t processed) const {
  out.append("data: ").append(prefix);
  fmt::format_to(std::back_inserter(out), "],\"prompt_progress\":{{\"total\":{},\"cache\":{},\"processed\":{},\"time_ms\":{:.3f}}}}}\n\n",
                 so_far.prompt_tokens, so_far.cached_tokens, processed, so_far.prompt_ms);
}

void append_chat_logprobs(std::string& out, const TextCodec& codec, std::span<const Token> tokens, bool as_ids) {
  out += R"({"content":[)";
  append_logprob_entries(out, codec, tokens, as_ids);
  out += R"(],"refusal":null})";
}

void append_completion_logprobs(std::string& out, const TextCodec& codec, std::span<const ScoredToken> tokens, bool as_ids) {
  out += R"({"tokens":)";
  append_each(out, tokens, [&](const ScoredToken& token) { json::append_string(out, printable_token(codec, token.id, as_ids)); });
  out += R"(,"token_logprobs":)";
  append_each(out, tokens, [&](const ScoredToken& token) {
    if (token.logprob) {
      json::append_float(out, *token.logprob);
    } else {
      out += "null";
    }
  });
  out += R"(,"top_logprobs":)";
  append_each(out, tokens, [&](const ScoredToken& token) { append_top_object(out, codec, token, as_ids); });
  out += R"(,"text_offset":)";
  append_each(out, tokens, [&](const ScoredToken& token) { fmt::format_to(std::back_inserter(out), "{}", token.offset); });
  out += '}';
}

void add_answer_tokens(std::vector<ScoredToken>& out, const TextCodec& codec, std::span<const Token> tokens, std::size_t& offset) {
  for (const Token& token : tokens) {
    out.push_back({token.id, token.logprob, token.top(), offset});
    if (!codec.is_silent(token.id)) offset += json::count_characters(codec.token_bytes(token.id));
  }
}

std::size_t add_prompt_tokens(std::vector<ScoredToken>& out, const TextCodec& codec, std::span<const PromptToken> tokens,
                              std::string_view text, std::size_t best) {
  const std::size_t whole = json::count_characters(text);
  const std::unique_ptr<StreamDecoder> decoder = codec.new_decoder();
  std::string decoded;
  std::size_t characters = 0;   // of `decoded`
  std::size_t added_space = 0;  // some tokenizers begin every text with one
  for (const PromptToken& token : tokens) {
    out.push_back(
        {token.id, token.logprob, std::span(token.top).first(std::min(best, token.top.size())), std::min(characters - added_space, whole)});
    const std::size_t size = decoded.size();
    if (codec.is_silent(token.id)) {  // nothing in a text, but one that a client writes out is echoed like all that he writes
      const std::string name = codec.token_bytes(token.id);
      if (text.substr(std::min(size - added_space, text.size())).starts_with(name)) decoded += name;
    } else {
      decoder->append(token.id, decoded);
    }
    characters += json::count_characters(std::string_view(decoded).substr(size));
    if (size == 0 && decoded.starts_with(' ') && !text.starts_with(' ')) added_space = 1;
  }
  return whole;
}

void append_prompt_logprobs(std::string& out, const TextCodec& codec, std::span<const PromptToken> tokens, std::size_t best) {
  out += R"(,"prompt_logprobs":)";
  append_each(out, tokens, [&](const PromptToken& token) {
    if (!token.logprob) {
      out += "null";
      return;
    }
    const auto own = std::find_if(token.top.begin(), token.top.end(), [&](const TokenLogprob& top) { return top.id == token.id; });
    const auto rank = static_cast<std::size_t>(own - token.top.begin());
    out += '{';
    append_ranked(out, codec, token.id, *token.logprob, own == token.top.end() ? std::nullopt : std::optional(rank + 1));
    for (std::size_t i = 0; i < std::min(best, token.top.size()); ++i) {
      if (i == rank) continue;
      out += ',';
      append_ranked(out, codec, token.top[i].id, token.top[i].logprob, i + 1);
    }
    out += '}';
  });
}

}  // namespace braid::net::openai
