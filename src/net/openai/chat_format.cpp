#include <fmt/format.h>
#include <net/http/error_response.h>
#include <net/json/write.h>
#include <net/openai/formats.h>

#include <iterator>
#include <vector>

namespace braid::net::openai {
namespace {

class ChatFormat final : public AnswerFormat {
 public:
  ChatFormat(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call)
      : identity_(identity),
        prefix_(answer_prefix(identity, "chat.completion.chunk")),
        codec_(codec),
        logprobs_(call.wants_logprobs()),
        token_ids_(call.return_token_ids),
        usage_(call.include_usage) {}

  void append_delta(std::string& out, std::uint32_t choice, const Pending& delta) override {
    append_role(out, choice);
    begin_chunk(out, choice);
    out += R"({"content":)";
    json::append_string(out, delta.text);
    out += '}';
    end_chunk(out, &delta, {});
  }

  void append_finish(std::string& out, std::uint32_t choice, FinishReason reason, const Pending& rest) override {
    append_role(out, choice);
    begin_chunk(out, choice);
    out += "{}";
    end_chunk(out, &rest, finish_name(reason));
  }

  void append_end(std::string& out, const Usage& usage) override { append_stream_end(out, prefix_, usage_, usage); }

  void append_error(std::string& out, const Error& error) override {
    out += "data: ";
    http::append_envelope(out, error);
    out += "\n\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += answer_prefix(identity_, "chat.completion");
    for (std::uint32_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += ',';
      fmt::format_to(std::back_inserter(out), R"({{"index":{},"message":{{"role":"assistant","content":)", i);
      json::append_string(out, choices[i].content.text);
      out += R"(,"refusal":null})";
      append_tail(out, &choices[i].content, finish_name(choices[i].reason));
    }
    out += ']';
    append_usage(out, usage);
    out += '}';
  }

 private:
  // The first chunk of a choice comes with its first token: before, there is nothing to say.
  void append_role(std::string& out, std::uint32_t choice) {
    if (begun_.size() <= choice) begun_.resize(choice + 1, false);
    if (begun_[choice]) return;
    begun_[choice] = true;
    begin_chunk(out, choice);
    out += R"({"role":"assistant","content":""})";
    end_chunk(out, nullptr, {});
  }

  void begin_chunk(std::string& out, std::uint32_t choice) {
    out.append("data: ").append(prefix_);
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"delta":)", choice);
  }

  void end_chunk(std::string& out, const Pending* content, std::string_view reason) {
    append_tail(out, content, reason);
    out += usage_ ? "],\"usage\":null}\n\n" : "]}\n\n";
  }

  // ,"logprobs":…,"finish_reason":…} with the tokens of `content`, if any.
  void append_tail(std::string& out, const Pending* content, std::string_view reason) {
    out += R"(,"logprobs":)";
    if (logprobs_ && content != nullptr) {
      append_chat_logprobs(out, codec_, content->logprobs);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":)";
    if (reason.empty()) {
      out += "null";
    } else {
      json::append_string(out, reason);
    }
    if (token_ids_ && content != nullptr) append_token_ids(out, content->token_ids);
    out += '}';
  }

  AnswerIdentity identity_;
  std::string prefix_;
  const TextCodec& codec_;
  std::vector<bool> begun_;  // per choice: whether its role chunk is out
  bool logprobs_;
  bool token_ids_;
  bool usage_;
};

}  // namespace

std::unique_ptr<AnswerFormat> chat_format(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call) {
  return std::make_unique<ChatFormat>(identity, codec, call);
}

}  // namespace braid::net::openai
