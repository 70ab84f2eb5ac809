#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/openai/formats.h"

#include <string_view>
#include <variant>
#include <vector>

namespace braid::net::openai {
namespace {

class CompletionFormat final : public AnswerFormat {
 public:
  CompletionFormat(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call)
      : prefix_(answer_prefix(identity, "text_completion")), codec_(codec), tail_(call), echo_(call.echo), echoes_(call.echoes),
        choices_(static_cast<std::size_t>(call.choices)), logprobs_(call.sampling.top_logprobs), prompt_logprobs_(call.prompt_logprobs),
        token_ids_(call.return_token_ids), as_ids_(call.tokens_as_ids), prompt_tokens_(call.prompt_tokens), progress_(call) {}

  void append_begin(std::string& out, const Usage& so_far) override { progress_.append_begin(out, prefix_, so_far); }

  void append_prompt(std::string& out, std::uint32_t choice, std::span<const PromptToken> tokens, const Usage& so_far) override {
    if (!echo_) return;
    std::vector<ScoredToken> scored;
    add_prompt(scored, choice, tokens);
    append_chunk(out, {choice, echo_of(choice), scored, {}, nullptr}, so_far);
  }

  // A completion has no reasoning and no calls: its deltas are text.
  void append_delta(std::string& out, std::uint32_t choice, const Delta& delta, const DeltaTokens& tokens, const Usage& so_far) override {
    std::vector<ScoredToken> scored;
    add_answer(scored, choice, tokens);
    append_chunk(out, {choice, std::get<TextDelta>(delta).text, scored, tokens.ids, nullptr}, so_far);
  }

  void append_finish(std::string& out, std::uint32_t choice, const ChoiceEnd& end, const DeltaTokens& rest, const Usage& so_far) override {
    std::vector<ScoredToken> scored;
    add_answer(scored, choice, rest);
    append_chunk(out, {choice, {}, scored, rest.ids, &end}, so_far);
  }

  void append_end(std::string& out, const Usage& usage) override { tail_.append_stream_end(out, prefix_, usage); }

  void append_error(std::string& out, const Error& error) override {
    out += "data: ";
    http::append_envelope(out, error);
    out += "\n\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += prefix_;
    for (std::uint32_t i = 0; i < choices.size(); ++i) {
      const ChoiceAnswer& answer = choices[i];
      if (i > 0) out += ',';
      std::vector<ScoredToken> scored;
      if (echo_) add_prompt(scored, i, answer.prompt);
      add_answer(scored, i, answer.piece.tokens);
      const std::string text = std::string(echo_of(i)) + answer_text(answer.piece.deltas);
      append_choice(out, {i, text, scored, answer.piece.tokens.ids, &answer.end});
      append_prompt_ids(out, i);
      if (prompt_logprobs_ >= 0) append_prompt_logprobs(out, codec_, answer.prompt, static_cast<std::size_t>(prompt_logprobs_));
      out += '}';
    }
    tail_.append_whole(out, usage);
  }

 private:
  // What one chunk or document says of a choice; null: it has not ended.
  struct Said {
    std::uint32_t choice;
    std::string_view text;
    std::span<const ScoredToken> scored;
    std::span<const TokenId> ids;
    const ChoiceEnd* end;
  };

  std::string_view echo_of(std::uint32_t choice) const { return echo_ ? std::string_view(echoes_.at(choice / choices_)) : ""; }

  std::size_t& offset_of(std::uint32_t choice) {
    if (offsets_.size() <= choice) offsets_.resize(choice + 1, 0);
    return offsets_[choice];
  }

  void add_prompt(std::vector<ScoredToken>& scored, std::uint32_t choice, std::span<const PromptToken> tokens) {
    if (logprobs_ < 0) return;
    offset_of(choice) = add_prompt_tokens(scored, codec_, tokens, echo_of(choice), static_cast<std::size_t>(logprobs_));
  }

  void add_answer(std::vector<ScoredToken>& scored, std::uint32_t choice, const DeltaTokens& tokens) {
    if (logprobs_ >= 0) add_answer_tokens(scored, codec_, tokens.scored, offset_of(choice));
  }

  void append_chunk(std::string& out, const Said& said, const Usage& so_far) {
    progress_.append_end(out, prefix_, so_far);
    out.append("data: ").append(prefix_);
    append_choice(out, said);
    if (said_prompt_.size() <= said.choice) said_prompt_.resize(said.choice + 1, false);
    if (!said_prompt_[said.choice]) append_prompt_ids(out, said.choice);
    said_prompt_[said.choice] = true;
    out += '}';
    tail_.append_chunk(out, so_far, said.end != nullptr);
  }

  void append_prompt_ids(std::string& out, std::uint32_t choice) const {
    if (!prompt_tokens_.empty()) append_prompt_token_ids(out, prompt_tokens_.at(choice / choices_));
  }

  // {"index":…,"text":…,"logprobs":…,"finish_reason":… and not yet the end.
  void append_choice(std::string& out, const Said& said) {
    append_choice_index(out, said.choice);
    out += R"("text":)";
    json::append_string(out, said.text);
    out += R"(,"logprobs":)";
    if (logprobs_ >= 0) {
      append_completion_logprobs(out, codec_, said.scored, as_ids_);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":)";
    if (said.end == nullptr) {
      out += "null";
    } else {
      json::append_string(out, finish_name(said.end->reason));
      append_stop_reason(out, *said.end);
    }
    if (token_ids_) append_token_ids(out, said.ids);
  }

  std::string prefix_;
  const TextCodec& codec_;
  AnswerTail tail_;
  bool echo_;
  std::vector<std::string> echoes_;   // [prompts]
  std::size_t choices_;               // of each prompt
  std::vector<std::size_t> offsets_;  // per choice: characters of the tokens reported so far
  std::int32_t logprobs_;             // as in SamplingParams
  std::int32_t prompt_logprobs_;
  bool token_ids_;
  bool as_ids_;
  std::vector<std::vector<TokenId>> prompt_tokens_;  // [prompts], or empty
  std::vector<bool> said_prompt_;                    // per choice of a stream: whether its first chunk is out
  PromptProgress progress_;
};

}  // namespace

std::unique_ptr<AnswerFormat> completion_format(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call) {
  return std::make_unique<CompletionFormat>(identity, codec, call);
}

}  // namespace braid::net::openai
