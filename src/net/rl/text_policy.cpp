// POST /v1/rl/act of a language model: observations are prompts, the answers to them are the actions.
#include "net/generation/prompts.h"
#include "net/generation/whole_format.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/request.h"
#include "net/rl/dialects.h"
#include "net/rl/token_lists.h"
#include "net/wish/parameters.h"

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::rl {
namespace {

constexpr std::size_t kMostObservations = 1024;

// Takes `name` out of the body; null where it is missing.
Value taken(Value& body, std::string_view name) {
  Value* const member = find_member(*body.get_if<ValueDict>(), name);
  return member != nullptr ? std::exchange(*member, Value()) : Value();
}

bool is_message(const Value& value) { return value.get_if<ValueDict>() != nullptr; }

// The token ids of one observation: a text is what the user says, a list of messages a chat, a list of numbers tokens.
Result<Value> prompt_of(Value&& observation, const std::string& path, const ServedModel& model) {
  const auto* list = observation.get_if<ValueList>();
  if (list != nullptr && !list->empty() && list->front().number()) {
    if (const auto ids = wish::read_token_ids(observation, path, model); !ids) return ids.error();
    return std::move(observation);
  }
  Value messages;
  if (list != nullptr && !list->empty() && is_message(list->front())) {
    messages = std::move(observation);
  } else if (Value* chat = is_message(observation) ? find_member(*observation.get_if<ValueDict>(), "messages") : nullptr) {
    messages = std::move(*chat);
  } else if (observation.get_if<std::string>() != nullptr) {
    messages = ValueList{ValueDict{{"role", "user"}, {"content", std::move(observation)}}};
  } else {
    return json::wrong_type(path, "a text, a list of messages, or token ids", observation);
  }
  Value chat(ValueDict{{"messages", std::move(messages)}});
  Result<Wish> wish = openai::read_chat(chat, model);
  if (!wish) return Error{wish.error().code, fmt::format("{}: {}", path, wish.error().message), path};
  if (!wish->images.empty()) return invalid_argument(fmt::format("{}: images are no part of an observation here", path), path);
  GenerationCall call(std::move(*wish));
  const auto prompts = encode_prompts(model, call);
  if (!prompts) return Error{prompts.error().code, fmt::format("{}: {}", path, prompts.error().message), path};
  ValueList ids;
  for (const TokenId id : prompts->front()) ids.emplace_back(std::int64_t{id});
  return Value(std::move(ids));
}

class TextPolicyFormat final : public WholeFormat {
 public:
  explicit TextPolicyFormat(const ServedModel& model) : model_(model) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += R"({"object":"rl.action","model":)";
    json::append_lossy_string(out, model_.id);
    out += R"(,"revision":)";
    json::append_lossy_string(out, revision_of(choices.front().piece.tokens.scored, model_));
    append_all(out, "actions", choices,
               [&out](const ChoiceAnswer& choice) { json::append_lossy_string(out, answer_text(choice.piece.deltas)); });
    append_all(out, "action_token_ids", choices, [&out](const ChoiceAnswer& choice) { append_ids(out, choice.piece.tokens.ids); });
    append_all(out, "action_log_probs", choices, [&out](const ChoiceAnswer& choice) {
      double sum = 0.0;
      for (const Token& token : choice.piece.tokens.scored) sum += static_cast<double>(token.drawn_logprob());
      json::append_float(out, static_cast<float>(sum));
    });
    append_all(out, "token_log_probs", choices,
               [&out](const ChoiceAnswer& choice) { append_drawn_logprobs(out, choice.piece.tokens.scored); });
    append_all(out, "model_log_probs", choices, [&out](const ChoiceAnswer& choice) { append_logprobs(out, choice.piece.tokens.scored); });
    if (model_.classes.labels.size() == 1) {
      append_all(out, "value_estimates", choices,
                 [&out](const ChoiceAnswer& choice) { json::append_float(out, choice.reviews.front().values.front()); });
    } else {
      out += R"(,"value_estimates":null)";
    }
    fmt::format_to(std::back_inserter(out),
                   R"(,"new_hidden_states":null,"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}}}})",
                   usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens);
  }

 private:
  template <class Append>
  static void append_all(std::string& out, std::string_view name, std::span<const ChoiceAnswer> choices, const Append& append) {
    fmt::format_to(std::back_inserter(out), R"(,"{}":[)", name);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += ',';
      append(choices[i]);
    }
    out += ']';
  }

  const ServedModel& model_;
};

class TextPolicy final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "act-"; }

  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override {
    const auto refused = refuse_others(body);
    if (!refused) return refused.error();
    Value observations = taken(body, "observations");
    if (observations.is_null()) return invalid_argument("'observations' is missing", "observations");
    auto* const list = observations.get_if<ValueList>();
    if (list == nullptr || list->empty())
      return json::wrong_type("observations", "a list of texts, chats or lists of tokens", observations);
    if (list->size() > kMostObservations)
      return invalid_argument(fmt::format("there are {} observations, at most {} may be given", list->size(), kMostObservations),
                              "observations");
    ValueList prompts;
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto prompt = prompt_of(std::move((*list)[i]), json::at_index("observations", i), model);
      if (!prompt) return prompt.error();
      prompts.push_back(std::move(*prompt));
    }
    auto& members = *body.get_if<ValueDict>();
    members.emplace_back("prompt", std::move(prompts));
    if (Value actions = taken(body, "actions"); !actions.is_null()) {
      if (const auto* choices = actions.get_if<ValueList>(); choices == nullptr || choices->empty())
        return json::wrong_type("actions", "a list of texts", actions);
      members.emplace_back("guided_choice", std::move(actions));
    }
    if (Value deterministic = taken(body, "deterministic"); !deterministic.is_null()) {
      const auto wanted = json::read_bool(deterministic, "deterministic");
      if (!wanted) return wanted.error();
      if (*wanted) {
        std::erase_if(members, [](const auto& member) { return member.first == "temperature"; });
        members.emplace_back("temperature", 0.0);
      }
    }
    Result<Wish> wish = openai::read_completion(body, model);
    if (!wish) return wish;
    for (const auto& [field, is_other] :
         {std::pair{"stream", wish->stream}, std::pair{"n", wish->candidates != 1}, std::pair{"echo", wish->echo}})
      if (is_other) return invalid_argument(fmt::format("'{}' is not for /v1/rl/act; see /v1/rl/rollout", field), field);
    wish->prompt_field = "observations";
    wish->is_urgent = true;
    if (model.classes.labels.size() == 1) wish->reviews.push_back({Review::What::kScores});  // of the state in which it acts
    want_tokens(*wish);
    return wish;
  }

  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall&) const override {
    return std::make_unique<TextPolicyFormat>(model);
  }

 private:
  static bool has(const Value& body, const char* name) {
    const Value* value = body.find(name);
    return value != nullptr && !value->is_null();
  }

  // What only networks have, and what is said as observations and actions here.
  static Result<void> refuse_others(const Value& body) {
    for (const char* name : {"hidden_states", "session", "session_ttl", "session_reset", "session_end", "step"})
      if (has(body, name))
        return invalid_argument(fmt::format("'{}' is about policies that are networks; a language model's state is its prompt", name),
                                name);
    for (const char* name : {"prompt", "messages"})
      if (has(body, name)) return invalid_argument(fmt::format("'{}' is not for /v1/rl/act, which takes 'observations'", name), name);
    return {};
  }
};

}  // namespace

std::unique_ptr<const Dialect> text_policy() { return std::make_unique<TextPolicy>(); }

}  // namespace braid::net::rl
