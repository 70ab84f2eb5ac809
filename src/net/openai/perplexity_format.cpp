#include "net/openai/perplexity_format.h"

#include "net/generation/answering_model.h"

#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <stdexcept>

namespace braid::net::openai {
namespace {

class PerplexityFormat final : public AnswerFormat {
 public:
  explicit PerplexityFormat(const ServedModel& model) : model_(answering_model(model)) {}

  void append_delta(std::string&, std::uint32_t, const Delta&, const DeltaTokens&, const Usage&) override { not_streamed(); }
  void append_finish(std::string&, std::uint32_t, const ChoiceEnd&, const DeltaTokens&, const Usage&) override { not_streamed(); }
  void append_end(std::string&, const Usage&) override { not_streamed(); }
  void append_error(std::string&, const Error&) override { not_streamed(); }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    double sum = 0.0;
    std::int32_t scored = 0;
    for (const PromptToken& token : choices.front().prompt) {
      if (!token.logprob) continue;
      sum -= *token.logprob;
      ++scored;
    }
    const double mean = scored > 0 ? sum / scored : 0.0;
    out += R"({"object":"perplexity","model":)" + model_;
    fmt::format_to(std::back_inserter(out), R"(,"tokens":{},"nll_mean":{},"perplexity":{},)", scored, mean, std::exp(mean));
    fmt::format_to(std::back_inserter(out), R"("usage":{{"prompt_tokens":{0},"completion_tokens":0,"total_tokens":{0}}}}})",
                   usage.prompt_tokens);
  }

 private:
  [[noreturn]] static void not_streamed() { throw std::logic_error("a perplexity is never streamed"); }

  std::string model_;
};

}  // namespace

std::unique_ptr<AnswerFormat> perplexity_format(const ServedModel& model) { return std::make_unique<PerplexityFormat>(model); }

}  // namespace braid::net::openai
