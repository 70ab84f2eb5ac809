#include "net/responses/response_format.h"

#include "net/generation/answering_model.h"
#include "net/generation/timings.h"
#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/responses/listed_items.h"
#include "net/responses/output_items.h"
#include "net/responses/request.h"
#include "net/responses/usage.h"

#include <cstddef>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace braid::net::responses {
namespace {

// Of those that the API knows.
std::string_view code_of(const Error& error) {
  if (error.code == ErrorCode::kInvalidArgument) return "invalid_prompt";
  return http::status_of(error.code) == 429 ? "rate_limit_exceeded" : "server_error";
}

class ResponseFormat final : public AnswerFormat, RunningResponse {
 public:
  ResponseFormat(const std::string& id, const ServedModel& model, const GenerationCall& call, RunningResponses& running)
      : id_(id), created_(static_cast<std::int64_t>(std::time(nullptr))), model_(answering_model(model)),
        details_(std::static_pointer_cast<const ResponseDetails>(call.details)),
        items_(id, *model.codec, details_->tools,
               {.events = call.stream, .logprobs = call.wants_logprobs(), .sealed_reasoning = details_->sealed_reasoning}),
        timings_(call.timings), running_(running) {
    running_.add(id_, *this);
  }
  ~ResponseFormat() override { running_.remove(id_); }
  ResponseFormat(const ResponseFormat&) = delete;
  ResponseFormat& operator=(const ResponseFormat&) = delete;

  void append_begin(std::string& out, const Usage&) override {
    for (const std::string_view type : {"response.created", "response.in_progress"}) {
      std::string members = R"(,"response":)";
      append_response(members, "in_progress", items_, nullptr, nullptr);
      items_.append_event(out, type, members);
    }
  }

  void append_delta(std::string& out, std::uint32_t, const Delta& delta, const DeltaTokens& tokens, const Usage&) override {
    items_.add(out, delta, tokens);
  }

  void append_finish(std::string& out, std::uint32_t, const ChoiceEnd& end, const DeltaTokens& rest, const Usage&) override {
    items_.add_end(rest);
    complete_ = end.reason != EndReason::kLength;
    items_.close(out, complete_);
  }

  void append_end(std::string& out, const Usage& usage) override {
    std::string response;
    append_response(response, status(), items_, &usage, nullptr);
    items_.append_event(out, complete_ ? "response.completed" : "response.incomplete", R"(,"response":)" + response);
    keep(std::move(response));
  }

  void append_error(std::string& out, const Error& error) override {
    items_.close(out, false);
    std::string members = R"(,"response":)";
    append_response(members, "failed", items_, nullptr, &error);
    items_.append_event(out, "response.failed", members);
    members = fmt::format(R"(,"code":"{}","message":)", code_of(error));
    json::append_lossy_string(members, error.message);
    members += R"(,"param":null,)";
    std::string envelope;  // SDKs look for an "error" in any event, and raise what it says
    http::append_envelope(envelope, error);
    members.append(envelope, 1, envelope.size() - 2);
    items_.append_event(out, "error", members);
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    std::string no_events;
    const ChoiceAnswer& answer = choices.front();
    const ChoicePiece& piece = answer.piece;
    DeltaTokens tokens;
    auto begin = piece.tokens.scored.begin();
    for (std::size_t i = 0; i < piece.deltas.size(); ++i) {
      const auto end = piece.tokens.scored.begin() + static_cast<std::ptrdiff_t>(piece.scored_ends[i]);
      tokens.scored.assign(std::exchange(begin, end), end);
      items_.add(no_events, piece.deltas[i], tokens);
    }
    tokens.scored.assign(begin, piece.tokens.scored.end());
    append_finish(no_events, 0, answer.end, tokens, usage);
    std::string response;
    append_response(response, status(), items_, &usage, nullptr);
    out += response;
    keep(std::move(response));
  }

 private:
  std::string_view status() const { return complete_ ? "completed" : "incomplete"; }

  void append_response(std::string& out, std::string_view status, const OutputItems& items, const Usage* usage, const Error* error) const {
    fmt::format_to(std::back_inserter(out), R"({{"id":"{}","object":"response","created_at":{},"status":"{}","model":)", id_, created_,
                   status);
    out += model_ + R"(,"error":)";
    if (error != nullptr) {
      fmt::format_to(std::back_inserter(out), R"({{"code":"{}","message":)", code_of(*error));
      json::append_lossy_string(out, error->message);
      out += '}';
    } else {
      out += "null";
    }
    out += status == "incomplete" ? R"(,"incomplete_details":{"reason":"max_output_tokens"})" : R"(,"incomplete_details":null)";
    out += R"(,"output":)";
    if (status != "in_progress") {
      items.append_output(out);
    } else {
      out += "[]";
    }
    out += details_->echo;
    const bool is_completed = status == "completed";
    fmt::format_to(std::back_inserter(out), R"(,"completed_at":{},"usage":)", is_completed ? std::to_string(std::time(nullptr)) : "null");
    if (usage != nullptr) {
      append_usage(out, *usage);
    } else {
      out += "null";
    }
    if (timings_ && usage != nullptr) append_timings(out, *usage);
    out += '}';
  }

  StoredResponse stored(std::string response) const {
    StoredResponse stored{details_->conversation, details_->input, std::move(response)};
    stored.messages.push_back(items_.as_message());
    complete_items(stored.input, id_);
    return stored;
  }

  void keep(std::string response) {
    if (details_->is_to_be_kept) details_->shelf.keep(id_, stored(std::move(response)));
  }

  const Shelf& shelf() const override { return details_->shelf; }
  bool is_to_be_kept() const override { return details_->is_to_be_kept; }

  StoredResponse as_cancelled() const override {
    std::string no_events;
    OutputItems items = items_;
    items.close(no_events, false);
    std::string response;
    append_response(response, "cancelled", items, nullptr, nullptr);
    StoredResponse cancelled = stored(std::move(response));
    cancelled.cancelled = true;
    return cancelled;
  }

  const std::string id_;
  const std::int64_t created_;
  const std::string model_;
  const std::shared_ptr<const ResponseDetails> details_;
  OutputItems items_;
  bool timings_;
  bool complete_ = true;
  RunningResponses& running_;
};

}  // namespace

std::unique_ptr<AnswerFormat> response_format(const std::string& id, const ServedModel& model, const GenerationCall& call,
                                              RunningResponses& running) {
  return std::make_unique<ResponseFormat>(id, model, call, running);
}

}  // namespace braid::net::responses
