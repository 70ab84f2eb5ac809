#include <fmt/format.h>
#include <net/http/error_response.h>
#include <net/json/write.h>
#include <net/openai/formats.h>

#include <iterator>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::net::openai {
namespace {

class CompletionFormat final : public AnswerFormat {
 public:
  CompletionFormat(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call)
      : prefix_(answer_prefix(identity, "text_completion")),
        codec_(codec),
        logprobs_(call.wants_logprobs()),
        token_ids_(call.return_token_ids),
        usage_(call.include_usage) {}

  // A completion has no reasoning and no calls: its deltas are text.
  void append_delta(std::string& out, std::uint32_t choice, const Delta& delta, const DeltaTokens& tokens, const Usage&) override {
    append_chunk(out, choice, std::get<TextDelta>(delta).text, tokens, {});
  }

  void append_finish(std::string& out, std::uint32_t choice, const ChoiceEnd& end, const DeltaTokens& rest, const Usage&) override {
    append_chunk(out, choice, {}, rest, finish_name(end.reason));
  }

  void append_end(std::string& out, const Usage& usage) override { append_stream_end(out, prefix_, usage_, usage); }

  void append_error(std::string& out, const Error& error) override {
    out += "data: ";
    http::append_envelope(out, error);
    out += "\n\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += prefix_;
    for (std::uint32_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += ',';
      append_choice(out, i, answer_text(choices[i].piece.deltas), choices[i].piece.tokens, finish_name(choices[i].end.reason));
    }
    out += ']';
    append_usage(out, usage);
    out += '}';
  }

 private:
  void append_chunk(std::string& out, std::uint32_t choice, std::string_view text, const DeltaTokens& tokens,
                    std::string_view reason) {
    out.append("data: ").append(prefix_);
    append_choice(out, choice, text, tokens, reason);
    out += usage_ ? "],\"usage\":null}\n\n" : "]}\n\n";
  }

  // {"index":…,"text":…,"logprobs":…,"finish_reason":…}; no reason is null.
  void append_choice(std::string& out, std::uint32_t choice, std::string_view text, const DeltaTokens& tokens,
                     std::string_view reason) {
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"text":)", choice);
    json::append_string(out, text);
    out += R"(,"logprobs":)";
    if (logprobs_) {
      if (offsets_.size() <= choice) offsets_.resize(choice + 1, 0);
      append_completion_logprobs(out, codec_, tokens.scored, offsets_[choice]);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":)";
    if (reason.empty()) {
      out += "null";
    } else {
      json::append_string(out, reason);
    }
    if (token_ids_) append_token_ids(out, tokens.ids);
    out += '}';
  }

  std::string prefix_;
  const TextCodec& codec_;
  std::vector<std::size_t> offsets_;  // per choice: characters of the tokens reported so far
  bool logprobs_;
  bool token_ids_;
  bool usage_;
};

}  // namespace

std::unique_ptr<AnswerFormat> completion_format(const AnswerIdentity& identity, const TextCodec& codec,
                                                const GenerationCall& call) {
  return std::make_unique<CompletionFormat>(identity, codec, call);
}

}  // namespace braid::net::openai
