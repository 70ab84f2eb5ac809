#include "net/generation/custom_input.h"
#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/openai/formats.h"

#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
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

// Under both names that clients know: llama-server's and vLLM's.
void append_reasoning(std::string& out, std::string_view text) {
  append_member(out, "reasoning_content", text);
  out += ',';
  append_member(out, "reasoning", text);
}

// The members of a chunk's delta.
void append_members(std::string& out, const TextDelta& delta) {
  out += '{';
  append_member(out, "content", delta.text);
  out += '}';
}

void append_members(std::string& out, const ReasoningDelta& delta) {
  out += '{';
  append_reasoning(out, delta.text);
  out += '}';
}

// "type":"function","function":{"name":…,"arguments":…}, or the same of a custom tool, whose text it is.
void append_called(std::string& out, std::string_view name, std::string_view text, bool is_custom) {
  out += is_custom ? R"("type":"custom","custom":{)" : R"("type":"function","function":{)";
  append_member(out, "name", name);
  out += ',';
  append_member(out, is_custom ? "input" : "arguments", text);
  out += '}';
}

// The functions that stand for custom tools.
using Customs = std::set<std::string, std::less<>>;

Customs customs_of(const GenerationCall& call) {
  Customs names;
  if (call.tools)
    for (const ToolFunction& function : call.tools->functions)
      if (function.is_custom) names.insert(function.name);
  return names;
}

// ,"tool_calls":[…] if there are calls.
void append_calls(std::string& out, const std::vector<Delta>& deltas, const Customs& customs) {
  std::string_view separator = R"(,"tool_calls":[)";
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const auto* begin = std::get_if<ToolCallBegin>(&deltas[i]);
    if (begin == nullptr) continue;
    const auto* arguments = i + 1 < deltas.size() ? std::get_if<ToolCallArguments>(&deltas[i + 1]) : nullptr;
    std::string text = arguments != nullptr ? arguments->text : "";
    const bool is_custom = customs.contains(begin->name);
    if (is_custom) {
      CustomInput input;
      const std::string so_far = input.feed(text);
      text = so_far + input.finish();
    }
    out.append(std::exchange(separator, ",")).append("{");
    append_member(out, "id", begin->id);
    out += ',';
    append_called(out, begin->name, text, is_custom);
    out += '}';
  }
  if (separator == ",") out += ']';
}

// {"role":"assistant","content":…,"refusal":null} and what else the choice has; its content begins with `text`. Beside calls, no text is null.
void append_message(std::string& out, const std::vector<Delta>& deltas, std::string text, const Customs& customs) {
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
    append_reasoning(out, reasoning);
  }
  append_calls(out, deltas, customs);
  out += R"(,"refusal":null})";
}

class ChatFormat final : public AnswerFormat {
 public:
  ChatFormat(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call)
      : identity_(identity), prefix_(answer_prefix(identity, "chat.completion.chunk")), codec_(codec), customs_(customs_of(call)),
        logprobs_(call.wants_logprobs()), token_ids_(call.return_token_ids), as_ids_(call.tokens_as_ids),
        prompt_logprobs_(call.prompt_logprobs), tail_(call), progress_(call) {
    if (!call.echoes.empty()) echo_ = call.echoes.front();
    if (!call.prompt_tokens.empty()) append_prompt_token_ids(prompt_ids_, call.prompt_tokens.front());
  }

  void append_begin(std::string& out, const Usage& so_far) override { progress_.append_begin(out, prefix_, so_far); }

  void append_delta(std::string& out, std::uint32_t choice, const Delta& delta, const DeltaTokens& tokens, const Usage& so_far) override {
    append_role(out, choice, so_far);
    if (!std::holds_alternative<ToolCallArguments>(delta)) end_custom(out, choice, so_far);
    begin_chunk(out, choice);
    std::visit([&](const auto& kind) { append_delta_of(out, choice, kind); }, delta);
    end_chunk(out, &tokens, nullptr, so_far);
  }

  void append_finish(std::string& out, std::uint32_t choice, const ChoiceEnd& end, const DeltaTokens& rest, const Usage& so_far) override {
    append_role(out, choice, so_far);
    end_custom(out, choice, so_far);
    begin_chunk(out, choice);
    out += "{}";
    end_chunk(out, &rest, &end, so_far);
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
      append_choice_index(out, i);
      out += R"("message":)";
      append_message(out, choices[i].piece.deltas, echo_, customs_);
      append_tail(out, &choices[i].piece.tokens, &choices[i].end);
    }
    std::string more = prompt_ids_;
    if (prompt_logprobs_ >= 0) append_prompt_logprobs(more, codec_, choices.front().prompt, static_cast<std::size_t>(prompt_logprobs_));
    tail_.append_whole(out, usage, more);
  }

 private:
  // The call of a custom tool that is open.
  struct OpenCustom {
    std::uint32_t index;
    CustomInput input;
  };

  void append_delta_of(std::string& out, std::uint32_t, const TextDelta& delta) { append_members(out, delta); }
  void append_delta_of(std::string& out, std::uint32_t, const ReasoningDelta& delta) { append_members(out, delta); }

  void append_delta_of(std::string& out, std::uint32_t choice, const ToolCallBegin& begin) {
    const bool is_custom = customs_.contains(begin.name);
    if (is_custom) open_.insert_or_assign(choice, OpenCustom{begin.index, {}});
    fmt::format_to(std::back_inserter(out), R"({{"tool_calls":[{{"index":{},)", begin.index);
    append_member(out, "id", begin.id);
    out += ',';
    append_called(out, begin.name, "", is_custom);
    out += "}]}";
  }

  void append_delta_of(std::string& out, std::uint32_t choice, const ToolCallArguments& arguments) {
    const auto open = open_.find(choice);
    if (open == open_.end()) return append_piece(out, arguments.index, "function", "arguments", arguments.text);
    append_piece(out, arguments.index, "custom", "input", open->second.input.feed(arguments.text));
  }

  // What is only known once all of its arguments are there.
  void end_custom(std::string& out, std::uint32_t choice, const Usage& so_far) {
    const auto open = open_.find(choice);
    if (open == open_.end()) return;
    const std::string rest = open->second.input.finish();
    if (!rest.empty()) {
      begin_chunk(out, choice);
      append_piece(out, open->second.index, "custom", "input", rest);
      end_chunk(out, nullptr, nullptr, so_far);
    }
    open_.erase(open);
  }

  static void append_piece(std::string& out, std::uint32_t index, std::string_view holder, std::string_view name, std::string_view text) {
    fmt::format_to(std::back_inserter(out), R"({{"tool_calls":[{{"index":{},"{}":{{)", index, holder);
    append_member(out, name, text);
    out += "}}]}";
  }

  // The first chunk of a choice comes with its first token: before, there is nothing to say.
  void append_role(std::string& out, std::uint32_t choice, const Usage& so_far) {
    if (begun_.size() <= choice) begun_.resize(choice + 1, false);
    if (begun_[choice]) return;
    begun_[choice] = true;
    progress_.append_end(out, prefix_, so_far);
    begin_chunk(out, choice);
    out += R"({"role":"assistant","content":""})";
    append_tail(out, nullptr, nullptr);
    tail_.append_chunk(out, so_far, false, prompt_ids_);
    if (echo_.empty()) return;
    begin_chunk(out, choice);
    append_members(out, TextDelta{echo_});
    end_chunk(out, nullptr, nullptr, so_far);
  }

  void begin_chunk(std::string& out, std::uint32_t choice) {
    out.append("data: ").append(prefix_);
    append_choice_index(out, choice);
    out += R"("delta":)";
  }

  void end_chunk(std::string& out, const DeltaTokens* tokens, const ChoiceEnd* end, const Usage& so_far) {
    append_tail(out, tokens, end);
    tail_.append_chunk(out, so_far, end != nullptr);
  }

  // ,"logprobs":…,"finish_reason":…} with `tokens` and an end, if there are any.
  void append_tail(std::string& out, const DeltaTokens* tokens, const ChoiceEnd* end) {
    out += R"(,"logprobs":)";
    if (logprobs_ && tokens != nullptr) {
      append_chat_logprobs(out, codec_, tokens->scored, as_ids_);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":)";
    if (end == nullptr) {
      out += "null";
    } else {
      json::append_string(out, finish_name(end->reason));
      append_stop_reason(out, *end);
    }
    if (token_ids_ && tokens != nullptr) append_token_ids(out, tokens->ids);
    out += '}';
  }

  AnswerIdentity identity_;
  std::string prefix_;
  const TextCodec& codec_;
  Customs customs_;
  std::map<std::uint32_t, OpenCustom> open_;  // by choice
  std::vector<bool> begun_;                   // per choice: whether its role chunk is out
  bool logprobs_;
  bool token_ids_;
  bool as_ids_;
  std::int32_t prompt_logprobs_;  // as in Request
  AnswerTail tail_;
  PromptProgress progress_;
  std::string echo_;        // what the answer's content begins with
  std::string prompt_ids_;  // a member of the document or of each choice's first chunk, or empty
};

}  // namespace

std::unique_ptr<AnswerFormat> chat_format(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call) {
  return std::make_unique<ChatFormat>(identity, codec, call);
}

}  // namespace braid::net::openai
