// POST /v1/rl/rollout: groups of completions in tokens.
#include "net/generation/whole_format.h"
#include "net/json/write.h"
#include "net/openai/answer_parts.h"
#include "net/openai/request.h"
#include "net/rl/dialects.h"
#include "net/rl/token_lists.h"

#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::rl {
namespace {

class RolloutFormat final : public WholeFormat {
 public:
  RolloutFormat(std::string id, const ServedModel& model, const GenerationCall& call)
      : id_(std::move(id)), model_(model), prompts_(call.prompt_tokens), group_(static_cast<std::size_t>(call.choices)) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    fmt::format_to(std::back_inserter(out), R"({{"id":{},"object":"rl.rollout","created":{},"model":{},"revision":{},"groups":[)",
                   json::quoted(id_), static_cast<std::int64_t>(std::time(nullptr)), json::quoted(model_.id),
                   json::quoted(revision_of(model_)));
    for (std::size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
      if (prompt > 0) out += ',';
      out += R"({"prompt_token_ids":)";
      append_ids(out, prompts_[prompt]);
      out += R"(,"completions":[)";
      for (std::size_t i = 0; i < group_; ++i) {
        if (i > 0) out += ',';
        append_completion(out, i, choices[prompt * group_ + i]);
      }
      out += "]}";
    }
    fmt::format_to(std::back_inserter(out),
                   R"(],"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"cached_tokens":{}}}}})", usage.prompt_tokens,
                   usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens);
  }

 private:
  void append_completion(std::string& out, std::size_t index, const ChoiceAnswer& choice) const {
    const DeltaTokens& tokens = choice.piece.tokens;
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"text":)", index);
    json::append_lossy_string(out, answer_text(choice.piece.deltas));
    out += R"(,"token_ids":)";
    append_ids(out, tokens.ids);
    out += R"(,"logprobs":)";
    append_logprobs(out, tokens.scored);
    // Ranges of tokens [begin, end), each with the revision that made them.
    fmt::format_to(std::back_inserter(out), R"(,"revisions":[{{"revision":{},"begin":0,"end":{}}}])", json::quoted(revision_of(model_)),
                   tokens.ids.size());
    fmt::format_to(std::back_inserter(out), R"(,"finish_reason":"{}")", openai::finish_name(choice.end.reason));
    openai::append_stop_reason(out, choice.end);
    out += '}';
  }

  const std::string id_;
  const ServedModel& model_;
  const std::vector<std::vector<TokenId>> prompts_;
  const std::size_t group_;  // completions of a prompt
};

class Rollout final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "rollout-"; }

  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override {
    const Value* messages = body.find("messages");
    const bool is_chat = messages != nullptr && !messages->is_null();
    Result<Wish> wish = is_chat ? openai::read_chat(body, model) : openai::read_completion(body, model);
    if (!wish) return wish;
    if (wish->stream) return invalid_argument("rollouts are not streamed: leave 'stream' out", "stream");
    if (wish->echo) return invalid_argument("'echo' is not for rollouts, which have the prompt's tokens anyway", "echo");
    if (wish->candidates > wish->choices) return invalid_argument("'best_of' is not for rollouts, which need all candidates", "best_of");
    want_tokens(*wish);
    return wish;
  }

  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return std::make_unique<RolloutFormat>(id, model, call);
  }
};

}  // namespace

std::unique_ptr<const Dialect> rollout() { return std::make_unique<Rollout>(); }

}  // namespace braid::net::rl
