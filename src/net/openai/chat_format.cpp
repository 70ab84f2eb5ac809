#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/openai/formats.h"

#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid::net::openai {
namespace {

void append_member(std::string& out, std::string_view name, std::string_view text) {
  json::append_string(out, name);
  out += ':';
  json::append_string(out, text);
}

// The members of a chunk's delta.
void append_members(std::string& out, const TextDelta& delta) {
  out += '{';
  append_member(out, "content", delta.text);
  out += '}';
}

void append_members(std::string& out, const ReasoningDelta& delta) {
  out += '{';
  append_member(out, "reasoning_content", delta.text);
  out += '}';
}

void append_members(std::string& out, const ToolCallBegin& begin) {
  fmt::format_to(std::back_inserter(out), R"({{"tool_calls":[{{"index":{},)", begin.index);
  append_member(out, "id", begin.id);
  out += R"(,"type":"function","function":{)";
  append_member(out, "name", begin.name);
  out += R"(,"arguments":""}}]})";
}

void append_members(std::string& out, const ToolCallArguments& arguments) {
  fmt::format_to(std::back_inserter(out), R"({{"tool_calls":[{{"index":{},"function":{{)", arguments.index);
  append_member(out, "arguments", arguments.text);
  out += "}}]}";
}

// ,"tool_calls":[…] if there are calls.
void append_calls(std::string& out, const std::vector<Delta>& deltas) {
  std::string_view separator = R"(,"tool_calls":[)";
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const auto* begin = std::get_if<ToolCallBegin>(&deltas[i]);
    if (begin == nullptr) continue;
    const auto* arguments = i + 1 < deltas.size() ? std::get_if<ToolCallArguments>(&deltas[i + 1]) : nullptr;
    out.append(std::exchange(separator, ",")).append("{");
    append_member(out, "id", begin->id);
    out += R"(,"type":"function","function":{)";
    append_member(out, "name", begin->name);
    out += ',';
    append_member(out, "arguments", arguments != nullptr ? arguments->text : "");
    out += "}}";
  }
  if (separator == ",") out += ']';
}

// {"role":"assistant","content":…,"refusal":null} and what else the choice has. Beside calls, no text is null.
void append_message(std::string& out, const std::vector<Delta>& deltas) {
  std::string text;
  std::string reasoning;
  bool calls = false;
  for (const Delta& delta : deltas) {
    if (const auto* piece = std::get_if<TextDelta>(&delta)) text += piece->text;
    if (const auto* thought = std::get_if<ReasoningDelta>(&delta)) reasoning += thought->text;
    calls = calls || std::holds_alternative<ToolCallBegin>(delta);
  }
  out += R"({"role":"assistant",)";
  if (text.empty() && calls) {
    out += R"("content":null)";
  } else {
    append_member(out, "content", text);
  }
  if (!reasoning.empty()) {
    out += ',';
    append_member(out, "reasoning_content", reasoning);
  }
  append_calls(out, deltas);
  out += R"(,"refusal":null})";
}

class ChatFormat final : public AnswerFormat {
 public:
  ChatFormat(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call)
      : identity_(identity), prefix_(answer_prefix(identity, "chat.completion.chunk")), codec_(codec), logprobs_(call.wants_logprobs()),
        token_ids_(call.return_token_ids), prompt_logprobs_(call.prompt_logprobs), tail_(call) {}

  void append_delta(std::string& out, std::uint32_t choice, const Delta& delta, const DeltaTokens& tokens, const Usage& so_far) override {
    append_role(out, choice, so_far);
    begin_chunk(out, choice);
    std::visit([&out](const auto& kind) { append_members(out, kind); }, delta);
    end_chunk(out, &tokens, {}, so_far);
  }

  void append_finish(std::string& out, std::uint32_t choice, const ChoiceEnd& end, const DeltaTokens& rest, const Usage& so_far) override {
    append_role(out, choice, so_far);
    begin_chunk(out, choice);
    out += "{}";
    end_chunk(out, &rest, finish_name(end.reason), so_far);
  }

  void append_end(std::string& out, const Usage& usage) override { tail_.append_stream_end(out, prefix_, usage); }

  void append_error(std::string& out, const Error& error) override {
    out += "data: ";
    http::append_envelope(out, error);
    out += "\n\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += answer_prefix(identity_, "chat.completion");
    for (std::uint32_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += ',';
      fmt::format_to(std::back_inserter(out), R"({{"index":{},"message":)", i);
      append_message(out, choices[i].piece.deltas);
      append_tail(out, &choices[i].piece.tokens, finish_name(choices[i].end.reason));
    }
    std::string more;
    if (prompt_logprobs_ >= 0) append_prompt_logprobs(more, codec_, choices.front().prompt, static_cast<std::size_t>(prompt_logprobs_));
    tail_.append_whole(out, usage, more);
  }

 private:
  // The first chunk of a choice comes with its first token: before, there is nothing to say.
  void append_role(std::string& out, std::uint32_t choice, const Usage& so_far) {
    if (begun_.size() <= choice) begun_.resize(choice + 1, false);
    if (begun_[choice]) return;
    begun_[choice] = true;
    begin_chunk(out, choice);
    out += R"({"role":"assistant","content":""})";
    end_chunk(out, nullptr, {}, so_far);
  }

  void begin_chunk(std::string& out, std::uint32_t choice) {
    out.append("data: ").append(prefix_);
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"delta":)", choice);
  }

  void end_chunk(std::string& out, const DeltaTokens* tokens, std::string_view reason, const Usage& so_far) {
    append_tail(out, tokens, reason);
    tail_.append_chunk(out, so_far);
  }

  // ,"logprobs":…,"finish_reason":…} with `tokens`, if any.
  void append_tail(std::string& out, const DeltaTokens* tokens, std::string_view reason) {
    out += R"(,"logprobs":)";
    if (logprobs_ && tokens != nullptr) {
      append_chat_logprobs(out, codec_, tokens->scored);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":)";
    if (reason.empty()) {
      out += "null";
    } else {
      json::append_string(out, reason);
    }
    if (token_ids_ && tokens != nullptr) append_token_ids(out, tokens->ids);
    out += '}';
  }

  AnswerIdentity identity_;
  std::string prefix_;
  const TextCodec& codec_;
  std::vector<bool> begun_;  // per choice: whether its role chunk is out
  bool logprobs_;
  bool token_ids_;
  std::int32_t prompt_logprobs_;  // as in Request
  AnswerTail tail_;
};

}  // namespace

std::unique_ptr<AnswerFormat> chat_format(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call) {
  return std::make_unique<ChatFormat>(identity, codec, call);
}

}  // namespace braid::net::openai
