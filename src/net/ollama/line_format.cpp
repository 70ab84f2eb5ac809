#include "net/ollama/line_format.h"

#include "net/generation/answering_model.h"
#include "net/generation/logprob_entries.h"
#include "net/generation/parser/whole_object.h"
#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/ollama/timestamp.h"

#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::ollama {
namespace {

std::int64_t nanoseconds(double milliseconds) { return static_cast<std::int64_t>(milliseconds * 1e6); }

struct Call {
  std::string id;
  std::string name;
  std::string arguments;
};

// What one line says of the answer.
struct Piece {
  std::string text;
  std::string thinking;
  std::vector<Call> calls;
  std::vector<Token> tokens;  // with log-probabilities

  void add(const Delta& delta) {
    if (const auto* said = std::get_if<TextDelta>(&delta)) text += said->text;
    if (const auto* thought = std::get_if<ReasoningDelta>(&delta)) thinking += thought->text;
    if (const auto* begin = std::get_if<ToolCallBegin>(&delta)) calls.push_back({begin->id, begin->name, {}});
    if (const auto* arguments = std::get_if<ToolCallArguments>(&delta)) calls.back().arguments += arguments->text;
  }
};

// `model` in quotes, and what else is to be told of it.
std::string line_head(const std::string& model) {
  return R"({"model":)" + model + R"(,"created_at":")" + timestamp(std::time(nullptr)) + '"';
}

// Of an answer to nothing.
std::string line_without_answer(std::string_view id, bool chat, std::string_view reason) {
  const std::string_view answer = chat ? R"(,"message":{"role":"assistant","content":""})" : R"(,"response":"")";
  return fmt::format(R"({}{},"done":true,"done_reason":"{}"}})", line_head(json::quoted(id)), answer, reason);
}

class LineFormat final : public AnswerFormat {
 public:
  LineFormat(const ServedModel& model, const GenerationCall& call, bool chat)
      : codec_(*model.codec), logprobs_(call.wants_logprobs()), chat_(chat), head_(line_head(answering_model(model))) {
    if (!chat && !call.prompt_tokens.empty()) context_ = call.prompt_tokens.front();
  }

  // A call is one line, with its arguments whole: it waits for what follows it.
  void append_delta(std::string& out, std::uint32_t, const Delta& delta, const DeltaTokens& tokens, const Usage&) override {
    const bool continues = std::holds_alternative<ToolCallArguments>(delta);
    if (!continues) flush(out);
    pending_.add(delta);
    pending_.tokens.insert(pending_.tokens.end(), tokens.scored.begin(), tokens.scored.end());
    add_to_context(tokens);
    if (pending_.calls.empty()) flush(out);
  }

  void append_finish(std::string& out, std::uint32_t, const ChoiceEnd& end, const DeltaTokens& rest, const Usage&) override {
    flush(out);
    pending_.tokens = rest.scored;
    add_to_context(rest);
    end_ = end;
  }

  void append_end(std::string& out, const Usage& usage) override {
    append_last(out, pending_, usage);
    out += '\n';
  }

  void append_error(std::string& out, const Error& error) override {
    out += R"({"error":)";
    json::append_lossy_string(out, error.message);
    out += "}\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    Piece piece;
    for (const Delta& delta : choices.front().piece.deltas) piece.add(delta);
    piece.tokens = choices.front().piece.tokens.scored;
    add_to_context(choices.front().piece.tokens);
    end_ = choices.front().end;
    append_last(out, piece, usage);
  }

 private:
  // Of an answer without tokens of its prompt there is none.
  void add_to_context(const DeltaTokens& tokens) {
    if (!context_.empty()) context_.insert(context_.end(), tokens.ids.begin(), tokens.ids.end());
  }

  // What ends an answer is not gone on from.
  void append_context(std::string& out) const {
    if (context_.empty()) return;
    const bool has_end = codec_.is_silent(context_.back());
    fmt::format_to(std::back_inserter(out), R"("context":[{}],)",
                   fmt::join(std::span(context_).first(context_.size() - (has_end ? 1 : 0)), ","));
  }

  void flush(std::string& out) {
    if (pending_.text.empty() && pending_.thinking.empty() && pending_.calls.empty()) return;
    append_piece(out, pending_);
    out += ",\"done\":false}\n";
    pending_ = {};
  }

  void append_piece(std::string& out, const Piece& piece) const {
    out += head_;
    out += chat_ ? R"(,"message":{"role":"assistant","content":)" : R"(,"response":)";
    json::append_lossy_string(out, piece.text);
    if (!piece.thinking.empty()) {
      out += R"(,"thinking":)";
      json::append_lossy_string(out, piece.thinking);
    }
    if (!piece.calls.empty()) append_calls(out, piece.calls);
    if (chat_) out += '}';
    if (!logprobs_) return;
    out += R"(,"logprobs":[)";
    append_logprob_entries(out, codec_, piece.tokens);
    out += ']';
  }

  static void append_calls(std::string& out, const std::vector<Call>& calls) {
    out += R"(,"tool_calls":[)";
    for (std::size_t i = 0; i < calls.size(); ++i)
      fmt::format_to(std::back_inserter(out), R"({}{{"id":{},"function":{{"index":{},"name":{},"arguments":{}}}}})", i > 0 ? "," : "",
                     json::quoted(calls[i].id), i, json::quoted(calls[i].name),
                     calls[i].arguments.empty() ? "{}" : whole_object(calls[i].arguments));
    out += ']';
  }

  void append_last(std::string& out, const Piece& piece, const Usage& usage) const {
    append_piece(out, piece);
    fmt::format_to(std::back_inserter(out), R"(,"done":true,"done_reason":"{}",)", end_.reason == EndReason::kLength ? "length" : "stop");
    append_context(out);
    fmt::format_to(std::back_inserter(out), R"("total_duration":{},"load_duration":0,)",
                   nanoseconds(usage.prompt_ms + usage.generation_ms));
    fmt::format_to(std::back_inserter(out), R"("prompt_eval_count":{},"prompt_eval_duration":{},"eval_count":{},"eval_duration":{}}})",
                   usage.prompt_tokens, nanoseconds(usage.prompt_ms - usage.queue_ms), usage.completion_tokens,
                   nanoseconds(usage.generation_ms));
  }

  const TextCodec& codec_;
  const bool logprobs_;
  const bool chat_;
  const std::string head_;  // of every line
  Piece pending_;
  ChoiceEnd end_;
  std::vector<TokenId> context_;  // of prompt and answer; empty: it is not told
};

}  // namespace

std::unique_ptr<AnswerFormat> line_format(const ServedModel& model, const GenerationCall& call, bool chat) {
  return std::make_unique<LineFormat>(model, call, chat);
}

std::string load_line(const ServedModel& model, bool chat) { return line_without_answer(model.id, chat, "load"); }

std::string unload_line(std::string_view id, bool chat) { return line_without_answer(id, chat, "unload"); }

http::Response error_response(const Error& error) {
  http::Response response = http::error_response(error);
  response.body = R"({"error":)";
  json::append_lossy_string(response.body, error.message);
  response.body += '}';
  return response;
}

}  // namespace braid::net::ollama
