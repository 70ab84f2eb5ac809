#include "net/anthropic/message_format.h"

#include "net/anthropic/request.h"
#include "net/generation/answering_model.h"
#include "net/generation/parser/whole_object.h"
#include "net/generation/timings.h"
#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/wish/seal.h"

#include <array>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace braid::net::anthropic {
namespace {

// Members that the API has for what no model of ours does.
constexpr std::string_view kNoDetails = R"(,"stop_details":null,"container":null)";

constexpr std::string_view kNoRequestId = R"("request_id":null})";  // the end of an error

std::string_view error_type(int status) {
  switch (status) {
    case 400:
    case 405:
    case 415:
    case 499:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return "api_error";
  }
}

void append_error_body(std::string& out, const Error& error) {
  fmt::format_to(std::back_inserter(out), R"({{"type":"error","error":{{"type":"{}","message":)", error_type(http::status_of(error.code)));
  json::append_lossy_string(out, error.message);
  out.append("},").append(kNoRequestId);
}

// "stop_reason":…,"stop_sequence":… and what else says how an answer ended
void append_stop(std::string& out, const ChoiceEnd& end) {
  constexpr std::string_view kReasons[] = {"end_turn", "stop_sequence", "max_tokens", "tool_use"};  // by EndReason
  fmt::format_to(std::back_inserter(out), R"("stop_reason":"{}","stop_sequence":)", kReasons[static_cast<int>(end.reason)]);
  out += end.reason == EndReason::kStopString ? json::quoted(end.stop_string) : "null";
  out += kNoDetails;
}

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 R"("usage":{{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":{},"output_tokens":{},)"
                 R"("output_tokens_details":{{"thinking_tokens":{}}},"cache_creation":null,"inference_geo":null,"server_tool_use":null,)"
                 R"("service_tier":"standard","speed":null}})",
                 usage.prompt_tokens - usage.cached_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens);
}

std::string text_block(std::string_view text) { return R"({"type":"text","text":)" + json::quoted(text) + R"(,"citations":null})"; }

std::string call_block(const ToolCallBegin& begin, std::string_view input) {
  return fmt::format(R"({{"type":"tool_use","id":{},"name":{},"input":{},"caller":{{"type":"direct"}}}})", json::quoted(begin.id),
                     json::quoted(begin.name), input);
}

// An empty block of the kind that a delta belongs to, as content_block_start has it.
struct BlockStart {
  std::string operator()(const TextDelta&) const { return text_block(""); }
  std::string operator()(const ReasoningDelta&) const { return R"({"type":"thinking","thinking":"","signature":""})"; }
  std::string operator()(const ToolCallBegin& begin) const { return call_block(begin, "{}"); }
  std::string operator()(const ToolCallArguments&) const { return {}; }  // never begins one
};

struct BlockDelta {
  std::string operator()(const TextDelta& delta) const { return R"({"type":"text_delta","text":)" + json::quoted(delta.text) + "}"; }
  std::string operator()(const ReasoningDelta& delta) const {
    return R"({"type":"thinking_delta","thinking":)" + json::quoted(delta.text) + "}";
  }
  std::string operator()(const ToolCallBegin&) const { return R"({"type":"input_json_delta","partial_json":""})"; }
  std::string operator()(const ToolCallArguments& delta) const {
    return R"({"type":"input_json_delta","partial_json":)" + json::quoted(delta.text) + "}";
  }
};

// The whole blocks of an answer. A call is two deltas: its begin and its arguments.
void append_blocks(std::string& out, const std::vector<Delta>& deltas, bool hides_thinking) {
  std::string_view separator = "";
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const Delta& delta = deltas[i];
    if (std::holds_alternative<ToolCallArguments>(delta)) continue;
    out += std::exchange(separator, ",");
    if (const auto* text = std::get_if<TextDelta>(&delta)) out += text_block(text->text);
    if (const auto* thought = std::get_if<ReasoningDelta>(&delta))
      out += fmt::format(R"({{"type":"thinking","thinking":{},"signature":"{}"}})", hides_thinking ? R"("")" : json::quoted(thought->text),
                         hides_thinking ? wish::sealed(thought->text) : "");
    if (const auto* begin = std::get_if<ToolCallBegin>(&delta)) {
      const auto* arguments = i + 1 < deltas.size() ? std::get_if<ToolCallArguments>(&deltas[i + 1]) : nullptr;
      out += call_block(*begin, arguments != nullptr ? whole_object(arguments->text) : "{}");
    }
  }
}

// ,"context_management":{"applied_edits":[…]}
void append_edits(std::string& out, const std::vector<AppliedEdit>& edits) {
  out += R"(,"context_management":{"applied_edits":[)";
  std::string_view separator = "";
  for (const AppliedEdit& edit : edits)
    fmt::format_to(std::back_inserter(out), R"({}{{"type":"{}","{}":{},"cleared_input_tokens":{}}})", std::exchange(separator, ","),
                   edit.type, edit.counted, edit.cleared, edit.tokens);
  out += "]}";
}

class MessageFormat final : public AnswerFormat {
 public:
  MessageFormat(const std::string& id, const ServedModel& model, const GenerationCall& call)
      : details_(std::static_pointer_cast<const MessageDetails>(call.details)), timings_(call.timings) {
    head_ = fmt::format(R"({{"id":"{}","type":"message","role":"assistant","model":{})", id, answering_model(model));
  }

  void append_begin(std::string& out, const Usage& so_far) override {
    std::string members = R"(,"message":)" + head_ + R"(,"content":[],"stop_reason":null,"stop_sequence":null)";
    members.append(kNoDetails).append(R"(,"diagnostics":null,)");
    append_usage(members, so_far);
    append_event(out, "message_start", members + "}");
  }

  void append_delta(std::string& out, std::uint32_t, const Delta& delta, const DeltaTokens&, const Usage&) override {
    const bool begins_call = std::holds_alternative<ToolCallBegin>(delta);
    const bool continues = block_open_ && !begins_call && (delta.index() == kind_ || std::holds_alternative<ToolCallArguments>(delta));
    if (!continues) {
      close_block(out);
      kind_ = delta.index();
      block_open_ = true;
      append_event(out, "content_block_start", fmt::format(R"(,"index":{},"content_block":{})", blocks_, std::visit(BlockStart{}, delta)));
    }
    if (const auto* thought = std::get_if<ReasoningDelta>(&delta); thought != nullptr && details_->hides_thinking) {
      hidden_ += thought->text;
      return;
    }
    append_event(out, "content_block_delta", fmt::format(R"(,"index":{},"delta":{})", blocks_, std::visit(BlockDelta{}, delta)));
  }

  void append_finish(std::string& out, std::uint32_t, const ChoiceEnd& end, const DeltaTokens&, const Usage&) override {
    close_block(out);
    end_ = end;
  }

  void append_end(std::string& out, const Usage& usage) override {
    std::string members = R"(,"delta":{)";
    append_stop(members, end_);
    members += "},";
    append_usage(members, usage);
    if (details_->applied_edits) append_edits(members, *details_->applied_edits);
    if (timings_) append_timings(members, usage);
    append_event(out, "message_delta", members);
    append_event(out, "message_stop", "");
  }

  void append_error(std::string& out, const Error& error) override {
    out += "event: error\ndata: ";
    append_error_body(out, error);
    out += "\n\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += head_;
    out += R"(,"content":[)";
    append_blocks(out, choices.front().piece.deltas, details_->hides_thinking);
    out += "],";
    append_stop(out, choices.front().end);
    out += R"(,"diagnostics":null,)";
    append_usage(out, usage);
    if (details_->applied_edits) append_edits(out, *details_->applied_edits);
    if (timings_) append_timings(out, usage);
    out += '}';
  }

 private:
  static void append_event(std::string& out, std::string_view type, std::string_view members) {
    fmt::format_to(std::back_inserter(out), "event: {0}\ndata: {{\"type\":\"{0}\"{1}}}\n\n", type, members);
  }

  void close_block(std::string& out) {
    if (!std::exchange(block_open_, false)) return;
    if (!hidden_.empty())
      append_event(out, "content_block_delta",
                   fmt::format(R"(,"index":{},"delta":{{"type":"signature_delta","signature":"{}"}})", blocks_,
                               wish::sealed(std::exchange(hidden_, {}))));
    append_event(out, "content_block_stop", fmt::format(R"(,"index":{})", blocks_++));
  }

  std::string head_;  // of the message object, up to its content
  std::uint32_t blocks_ = 0;
  std::size_t kind_ = 0;  // index in Delta of what began the open block
  bool block_open_ = false;
  ChoiceEnd end_;
  std::string hidden_;  // of the open block: thoughts that the client gets sealed
  const std::shared_ptr<const MessageDetails> details_;
  bool timings_;
};

}  // namespace

std::unique_ptr<AnswerFormat> message_format(const std::string& id, const ServedModel& model, const GenerationCall& call) {
  return std::make_unique<MessageFormat>(id, model, call);
}

void sign_error(http::Response& response, std::string_view request_id) {
  std::string& body = response.body;
  if (!body.ends_with(kNoRequestId)) return;
  body.resize(body.size() - kNoRequestId.size());
  body += R"("request_id":)" + json::quoted(request_id) + '}';
}

http::Response error_response(const Error& error) {
  Error own = error;
  if (own.param == "continue_final_message") own.message = "a last message of the assistant needs text";  // what it stands for here
  http::Response response = http::error_response(own);
  response.body.clear();
  append_error_body(response.body, own);
  return response;
}

}  // namespace braid::net::anthropic
