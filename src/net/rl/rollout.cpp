// POST /v1/rl/rollout: groups of completions in tokens.
#include "net/generation/whole_format.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/answer_parts.h"
#include "net/openai/request.h"
#include "net/rl/dialects.h"
#include "net/rl/token_lists.h"

#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::rl {
namespace {

// Members of the body that say what a learner wants besides, and where the answers to that lie.
struct RolloutDetails final : DialectDetails {
  static constexpr std::size_t kNone = SIZE_MAX;

  std::size_t reference = kNone;  // places among the wish's reviews
  std::size_t vectors = kNone;
  std::size_t values = kNone;
  std::optional<std::vector<std::int64_t>> positions;  // of the completion's tokens whose vectors are wanted, from its end if negative
};

Value taken_member(Value& body, std::string_view name) {
  Value* const member = find_member(*body.get_if<ValueDict>(), name);
  return member != nullptr ? std::exchange(*member, Value()) : Value();
}

// "return_hidden": true, or a list of positions.
Result<bool> read_hidden(const Value& value, RolloutDetails& details) {
  const auto* list = value.get_if<ValueList>();
  if (value.is_null()) return false;
  if (list == nullptr) return json::read_bool(value, "return_hidden");
  details.positions.emplace();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto position = json::read_integer((*list)[i], json::at_index("return_hidden", i));
    if (!position) return position.error();
    details.positions->push_back(*position);
  }
  return true;
}

// What is said of reviews, taken out of the body.
Result<std::vector<Review>> take_reviews(Value& body, const ServedModel& model, RolloutDetails& details) {
  std::vector<Review> reviews;
  if (const Value reference = taken_member(body, "reference"); !reference.is_null()) {
    auto name = json::read_string(reference, "reference");
    if (!name) return name.error();
    if (name->empty())
      return invalid_argument("'reference' is empty: expected the name of the model, or of one of its adapters", "reference");
    details.reference = reviews.size();
    reviews.push_back({Review::What::kLogprobs, std::move(*name), "reference"});
  }
  const auto hidden = read_hidden(taken_member(body, "return_hidden"), details);
  if (!hidden) return hidden.error();
  if (*hidden) {
    details.vectors = reviews.size();
    reviews.push_back({Review::What::kVectors});
  }
  const Value values = taken_member(body, "return_values");
  const auto wanted = values.is_null() ? Result<bool>(false) : json::read_bool(values, "return_values");
  if (!wanted) return wanted.error();
  if (!*wanted) return reviews;
  if (model.classes.labels.size() != 1)
    return invalid_argument(fmt::format("the model '{}' has no head that gives one value; name an adapter that has one", model.id),
                            "return_values");
  details.values = reviews.size();
  reviews.push_back({Review::What::kScores});
  return reviews;
}

class RolloutFormat final : public WholeFormat {
 public:
  RolloutFormat(std::string id, const ServedModel& model, const GenerationCall& call)
      : id_(std::move(id)), model_(model), prompts_(call.prompt_tokens), group_(static_cast<std::size_t>(call.choices)),
        details_(static_cast<const RolloutDetails&>(*call.details)) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    fmt::format_to(std::back_inserter(out), R"({{"id":{},"object":"rl.rollout","created":{},"model":{},"revision":{},"groups":[)",
                   json::quoted(id_), static_cast<std::int64_t>(std::time(nullptr)), json::quoted(model_.id),
                   json::quoted(revision_of(choices.front().piece.tokens.scored, model_)));
    for (std::size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
      if (prompt > 0) out += ',';
      out += R"({"prompt_token_ids":)";
      append_ids(out, prompts_[prompt]);
      out += R"(,"completions":[)";
      for (std::size_t i = 0; i < group_; ++i) {
        if (i > 0) out += ',';
        append_completion(out, i, prompts_[prompt].size(), choices[prompt * group_ + i]);
      }
      out += "]}";
    }
    fmt::format_to(std::back_inserter(out),
                   R"(],"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"cached_tokens":{}}}}})", usage.prompt_tokens,
                   usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens);
  }

 private:
  // [of each of the completion's tokens the reference's log-probability]
  static void append_reference(std::string& out, std::span<const PromptToken> tokens) {
    out += R"(,"reference_logprobs":[)";
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) out += ',';
      json::append_float(out, tokens[i].logprob.value_or(0.0F));
    }
    out += ']';
  }

  // Vectors of the completion's tokens, with their positions.
  void append_vectors(std::string& out, std::size_t tokens, const std::vector<float>& values) const {
    const std::size_t width = values.size() / (tokens + 1);
    std::vector<std::int64_t> positions;
    if (!details_.positions)
      for (std::size_t i = 0; i < tokens; ++i) positions.push_back(static_cast<std::int64_t>(i));
    if (details_.positions)
      for (const std::int64_t position : *details_.positions)
        positions.push_back(position < 0 ? position + static_cast<std::int64_t>(tokens) : position);
    out += R"(,"hidden":[)";
    bool first = true;
    for (const std::int64_t position : positions) {
      if (position < 0 || std::cmp_greater_equal(position, tokens)) continue;  // the completion has none there
      fmt::format_to(std::back_inserter(out), R"({}{{"position":{},"vector":)", std::exchange(first, false) ? "" : ",", position);
      append_numbers(out, std::span(values).subspan((static_cast<std::size_t>(position) + 1) * width, width));
      out += '}';
    }
    out += ']';
  }

  void append_completion(std::string& out, std::size_t index, std::size_t prompt, const ChoiceAnswer& choice) const {
    const DeltaTokens& tokens = choice.piece.tokens;
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"text":)", index);
    json::append_lossy_string(out, answer_text(choice.piece.deltas));
    out += R"(,"token_ids":)";
    append_ids(out, tokens.ids);
    out += R"(,"logprobs":)";
    append_logprobs(out, tokens.scored);
    out += R"(,"sampled_logprobs":)";
    append_drawn_logprobs(out, tokens.scored);
    out += R"(,"revisions":)";
    append_revisions(out, tokens.scored, model_);
    if (details_.reference != RolloutDetails::kNone)
      append_reference(out, std::span(choice.reviews[details_.reference].tokens).subspan(prompt));
    if (details_.values != RolloutDetails::kNone) {
      out += R"(,"values":)";
      append_numbers(out, choice.reviews[details_.values].values);
    }
    if (details_.vectors != RolloutDetails::kNone) append_vectors(out, tokens.ids.size(), choice.reviews[details_.vectors].values);
    fmt::format_to(std::back_inserter(out), R"(,"finish_reason":"{}")", openai::finish_name(choice.end.reason));
    openai::append_stop_reason(out, choice.end);
    out += '}';
  }

  const std::string id_;
  const ServedModel& model_;
  const std::vector<std::vector<TokenId>> prompts_;
  const std::size_t group_;  // completions of a prompt
  const RolloutDetails details_;
};

class Rollout final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "rollout-"; }

  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override {
    const auto details = std::make_shared<RolloutDetails>();
    auto reviews = take_reviews(body, model, *details);
    if (!reviews) return reviews.error();
    const Value* messages = body.find("messages");
    const bool is_chat = messages != nullptr && !messages->is_null();
    Result<Wish> wish = is_chat ? openai::read_chat(body, model) : openai::read_completion(body, model);
    if (!wish) return wish;
    if (wish->stream) return invalid_argument("rollouts are not streamed: leave 'stream' out", "stream");
    if (wish->echo) return invalid_argument("'echo' is not for rollouts, which have the prompt's tokens anyway", "echo");
    if (wish->candidates > wish->choices) return invalid_argument("'best_of' is not for rollouts, which need all candidates", "best_of");
    if (!reviews->empty() && wish->max_tokens == 0)
      return invalid_argument("'max_tokens' is 0: there are no tokens to say anything of", "max_tokens");
    if (!reviews->empty() && !wish->images.empty())
      return invalid_argument("'reference', 'return_hidden' and 'return_values' are not for chats with images", "messages");
    wish->reviews = std::move(*reviews);
    wish->details = details;
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
