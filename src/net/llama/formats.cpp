#include "net/llama/formats.h"

#include "net/generation/answering_model.h"
#include "net/generation/settings.h"
#include "net/generation/timings.h"
#include "net/generation/whole_format.h"
#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/openai/embeddings.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::llama {
namespace {

// "id":…,"token":…,"bytes":[…],"logprob":…
void append_probability(std::string& out, const TextCodec& codec, TokenId id, float logprob) {
  const std::string bytes = codec.token_bytes(id);
  fmt::format_to(std::back_inserter(out), R"("id":{},"token":)", id);
  json::append_lossy_string(out, bytes);
  out += R"(,"bytes":[)";
  for (std::size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  out += R"(],"logprob":)";
  json::append_float(out, logprob);
}

// ,"completion_probabilities":[…]
void append_probabilities(std::string& out, const TextCodec& codec, std::span<const Token> tokens) {
  out += R"(,"completion_probabilities":[)";
  for (std::size_t entry = 0; entry < tokens.size(); ++entry) {
    out += entry > 0 ? ",{" : "{";
    append_probability(out, codec, tokens[entry].id, tokens[entry].logprob);
    out += R"(,"top_logprobs":[)";
    const std::span<const TokenLogprob> top = tokens[entry].top();
    for (std::size_t i = 0; i < top.size(); ++i) {
      out += i > 0 ? ",{" : "{";
      append_probability(out, codec, top[i].id, top[i].logprob);
      out += '}';
    }
    out += "]}";
  }
  out += ']';
}

std::string_view stop_type(const ChoiceEnd& end) {
  if (end.reason == EndReason::kLength) return "limit";
  return end.reason == EndReason::kStopString ? "word" : "eos";
}

std::string settings_of(const Wish& wish) {
  std::string out;
  append_settings(out, wish);
  return out;
}

class CompletionFormat final : public AnswerFormat {
 public:
  CompletionFormat(const ServedModel& model, const GenerationCall& call)
      : codec_(*model.codec), model_(answering_model(model)), choices_(static_cast<std::size_t>(call.choices)),
        settings_(settings_of(call)), details_(std::static_pointer_cast<const CompletionDetails>(call.details)),
        logprobs_(call.wants_logprobs()), tells_tokens_(details_->tells_tokens), timings_per_token_(call.timings_per_token),
        tells_progress_(call.prompt_progress) {
    for (const std::vector<TokenId>& prompt : call.prompt_tokens) prompts_.push_back(prompt.size());
  }

  void append_begin(std::string& out, const Usage& so_far) override {
    if (tells_progress_) append_progress(out, so_far, 0);
  }

  void append_delta(std::string& out, std::uint32_t choice, const Delta& delta, const DeltaTokens& tokens, const Usage& so_far) override {
    if (std::exchange(tells_progress_, false)) append_progress(out, so_far, so_far.prompt_tokens);
    out += "data: ";
    begin(out, choice, std::get<TextDelta>(delta).text, tokens, false);
    if (timings_per_token_) append_timings(out, so_far);
    out += "}\n\n";
  }

  void append_finish(std::string& out, std::uint32_t choice, const ChoiceEnd& end, const DeltaTokens& rest, const Usage& so_far) override {
    out += "data: ";
    append_ended(out, choice, {}, rest, end, so_far);
    out += "\n\n";
  }

  void append_end(std::string&, const Usage&) override {}

  void append_error(std::string& out, const Error& error) override {
    out += "data: ";
    http::append_envelope(out, error);
    out += "\n\n";
  }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    if (choices.size() > 1) out += '[';
    for (std::uint32_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += ',';
      append_ended(out, i, answer_text(choices[i].piece.deltas), choices[i].piece.tokens, choices[i].end, usage);
    }
    if (choices.size() > 1) out += ']';
  }

 private:
  // An event without text.
  void append_progress(std::string& out, const Usage& so_far, std::int32_t processed) {
    out += "data: ";
    begin(out, 0, {}, {}, false);
    fmt::format_to(std::back_inserter(out), R"(,"prompt_progress":{{"total":{},"cache":{},"processed":{},"time_ms":{:.3f}}}}})",
                   so_far.prompt_tokens, so_far.cached_tokens, processed, so_far.prompt_ms);
    out += "\n\n";
  }

  // {"index":…,"content":… and what is known of the tokens, not yet the end.
  void begin(std::string& out, std::uint32_t choice, std::string_view text, const DeltaTokens& tokens, bool ended) {
    if (predicted_.size() <= choice) predicted_.resize(choice + 1, 0);
    if (lines_.size() <= choice) lines_.resize(choice + 1, 0);
    predicted_[choice] += tokens.ids.size();
    lines_[choice] += text.find('\n') != std::string_view::npos ? 1 : 0;
    fmt::format_to(std::back_inserter(out), R"({{"index":{0},"id_slot":{0},"content":)", choice);
    json::append_string(out, text);
    fmt::format_to(std::back_inserter(out), R"(,"tokens":[{}],"stop":{},"tokens_predicted":{},"tokens_evaluated":{})",
                   tells_tokens_ ? fmt::format("{}", fmt::join(tokens.ids, ",")) : "", ended, predicted_[choice],
                   prompts_.at(choice / choices_));
    if (logprobs_) append_probabilities(out, codec_, tokens.scored);
  }

  void append_ended(std::string& out, std::uint32_t choice, std::string_view text, const DeltaTokens& tokens, const ChoiceEnd& end,
                    const Usage& usage) {
    begin(out, choice, text, tokens, true);
    fmt::format_to(std::back_inserter(out),
                   R"(,"model":{},"stop_type":"{}","stopping_word":{},"truncated":false,"tokens_cached":{},"has_new_line":{})", model_,
                   stop_type(end), json::quoted(end.stop_string), usage.cached_tokens, lines_[choice] != 0);
    out += R"(,"generation_settings":)" + settings_ + R"(,"prompt":)";
    json::append_lossy_string(out, details_->prompts.at(choice / choices_));
    append_timings(out, usage);
    out += '}';
  }

  const TextCodec& codec_;
  const std::string model_;             // as answering_model() tells it
  std::size_t choices_;                 // of each prompt
  std::vector<std::size_t> prompts_;    // [prompts]: their tokens
  std::vector<std::size_t> predicted_;  // per choice: tokens so far
  std::vector<std::size_t> lines_;      // per choice: pieces with a line feed
  std::string settings_;
  std::shared_ptr<const CompletionDetails> details_;
  bool logprobs_;
  bool tells_tokens_;
  bool timings_per_token_;
  bool tells_progress_;  // a stream: when the prompt's computation ends
};

class EmbeddingFormat final : public WholeFormat {
 public:
  EmbeddingFormat(const ServedModel& model, const GenerationCall& call)
      : norm_(static_cast<const EmbeddingDetails&>(*call.details).norm),
        width_(call.pooling == Pooling::kEach ? static_cast<std::size_t>(model.vectors.width) : 0) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage&) override {
    out += '[';
    for (std::size_t i = 0; i < choices.size(); ++i) {
      fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"embedding":[)", i > 0 ? "," : "", i);
      const std::vector<float>& all = choices[i].vector;
      const std::size_t width = width_ > 0 ? width_ : all.size();
      for (std::size_t begin = 0; begin < all.size(); begin += width) {
        if (begin > 0) out += ',';
        append_vector(out, std::span(all).subspan(begin, width));
      }
      out += "]}";
    }
    out += ']';
  }

 private:
  void append_vector(std::string& out, std::span<const float> given) const {
    std::vector<float> vector(given.begin(), given.end());
    openai::scale_by_norm(vector, norm_);
    std::string_view separator = "[";
    for (const float value : vector) {
      out += std::exchange(separator, ",");
      json::append_float(out, value);
    }
    out += ']';
  }

  int norm_;
  std::size_t width_;  // of each token's vector; 0: there is one vector
};

}  // namespace

std::unique_ptr<AnswerFormat> completion_format(const ServedModel& model, const GenerationCall& call) {
  return std::make_unique<CompletionFormat>(model, call);
}

std::unique_ptr<AnswerFormat> embedding_format(const ServedModel& model, const GenerationCall& call) {
  return std::make_unique<EmbeddingFormat>(model, call);
}

}  // namespace braid::net::llama
