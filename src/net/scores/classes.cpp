// /v1/classifications, /classify, /v1/rewards/score and /pooling: what a head for classes says of one text.
#include "net/generation/answering_model.h"
#include "net/generation/whole_format.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/embeddings.h"
#include "net/openai/request.h"
#include "net/scores/dialects.h"
#include "net/scores/fields.h"
#include "net/wish/finish.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::net::scores {
namespace {

constexpr std::array kInput = {wish::Parameter{"input", openai::read_prompt}};

struct ClassDetails final : DialectDetails {
  bool logits = false;
  bool activates = true;
};

// A conversation as the model's template writes it, with the model's answer as its last message.
// `path`: where its messages stood.
Result<Wish> read_chat(Value& body, const ServedModel& model, wish::BodyFields& fields, const std::string& path) {
  std::optional<Value> messages = take(body, "messages");
  auto* list = messages->get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", *messages);
  if (list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  const std::array tables = {wish::chat_parameters(), wish::common_parameters()};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!fields.add_generation_prompt) fields.add_generation_prompt = false;
  const std::optional<std::int32_t> head = fields.wish.prompt_head;
  Result<Wish> wish = wish::finish_chat(
      std::move(fields), std::move(*list), [&path](std::size_t index) { return json::at_index(path, index); }, "messages");
  if (!wish) return wish;
  wish->prompt_head = head;
  wish->max_tokens = 0;
  wish->choices = wish->candidates = 1;
  wish->stream = false;
  wish->sampling = {};
  wish->pooling = score_pooling(model);
  wish->pooled_output = PooledOutput::kScores;
  return wish;
}

// Bytes of the texts and names in a value, and some for each.
std::size_t bytes_of(const Value& value) {
  constexpr std::size_t kBytesOfValue = 16;
  std::size_t bytes = kBytesOfValue;
  if (const auto* text = value.get_if<std::string>()) bytes += text->size();
  if (const auto* list = value.get_if<ValueList>())
    for (const Value& each : *list) bytes += bytes_of(each);
  if (const auto* dict = value.get_if<ValueDict>())
    for (const auto& [name, each] : *dict) bytes += name.size() + bytes_of(each);
  return bytes;
}

// Several conversations, with all else of the body for each.
Result<Wish> read_chats(Value& body, const ServedModel& model, const wish::BodyFields& fields) {
  constexpr std::size_t kMostChats = 1024;
  ValueList chats = std::move(*take(body, "messages")->get_if<ValueList>());
  if (chats.size() > kMostChats)
    return invalid_argument(fmt::format("'messages' has {} conversations, at most {} may be given", chats.size(), kMostChats), "messages");
  if (const std::size_t bytes = bytes_of(body); bytes > kMostRepeatedBytes / chats.size())
    return invalid_argument(fmt::format("{} bytes stand beside each of {} conversations: together more than {} MiB", bytes, chats.size(),
                                        kMostRepeatedBytes >> 20U),
                            "messages");
  std::optional<Wish> all;
  std::vector<ChatPrompt> prompts;
  for (std::size_t i = 0; i < chats.size(); ++i) {
    Value own = body;
    *find_member(*own.get_if<ValueDict>(), "messages") = std::move(chats[i]);
    wish::BodyFields of_chat(model);
    of_chat.wish.prompt_head = fields.wish.prompt_head;
    Result<Wish> wish = read_chat(own, model, of_chat, json::at_index("messages", i));
    if (!wish) return wish;
    if (!wish->images.empty())
      return invalid_argument("images are read where 'messages' is one conversation", json::at_index("messages", i));
    prompts.push_back(std::move(std::get<ChatPrompt>(wish->prompt)));
    all = std::move(*wish);
  }
  all->prompt = std::vector<PromptItem>();
  all->chats = std::move(prompts);
  return std::move(*all);
}

// A list of lists.
bool are_chats(const Value& messages) {
  const auto* list = messages.get_if<ValueList>();
  return list != nullptr && !list->empty() && list->front().get_if<ValueList>() != nullptr;
}

// Of what is read again for each of several conversations.
std::size_t repeated_bytes(const Value& body) {
  const Value* messages = body.find("messages");
  if (messages == nullptr || !are_chats(*messages)) return 0;
  return messages->get_if<ValueList>()->size() * (bytes_of(body) - bytes_of(*messages));
}

Result<Wish> read_scored(Value& body, const ServedModel& model, bool takes_chats) {
  if (const Result<void> has = need_classes(model); !has) return has.error();
  wish::BodyFields fields(model);
  const auto details = std::make_shared<ClassDetails>();
  const Result<bool> logits = take_flag(body, "logits", false);
  if (!logits) return logits.error();
  details->logits = *logits;
  for (const char* name : {"activation", "use_activation", "softmax"}) {
    const Result<bool> activates = take_flag(body, name, details->activates);
    if (!activates) return activates.error();
    details->activates = *activates;
  }
  const Value* messages = body.find("messages");
  const bool is_chat = takes_chats && messages != nullptr && !messages->is_null();
  if (is_chat) {
    if (const Result<void> truncated = openai::read_truncation(body, fields.wish); !truncated) return truncated.error();
  }
  const bool are_several = is_chat && are_chats(*messages);
  Result<Wish> wish = are_several ? read_chats(body, model, fields)
                      : is_chat   ? read_chat(body, model, fields, "messages")
                                  : wish_for_scores(body, fields, "input", kInput);
  if (wish) wish->details = details;
  return wish;
}

// Of what gives scores as they are, or probabilities in their place, and not both.
Result<Wish> read_scores_alone(Value& body, const ServedModel& model) {
  const Value* logits = body.find("logits");
  if (logits != nullptr && !logits->is_null())
    return invalid_argument("'logits' is known where probabilities are given beside them: at /v1/classifications", "logits");
  return read_scored(body, model, true);
}

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out), R"("usage":{{"prompt_tokens":{0},"total_tokens":{0},"completion_tokens":0}})",
                 usage.prompt_tokens);
}

// {"id","object":"list","created","model","data":[
void append_head(std::string& out, const std::string& id, const ServedModel& model) {
  fmt::format_to(std::back_inserter(out), R"({{"id":{},"object":"list","created":{},"model":{},"data":[)", json::quoted(id),
                 static_cast<std::int64_t>(std::time(nullptr)), answering_model(model));
}

class ClassFormat final : public WholeFormat {
 public:
  ClassFormat(std::string id, const ServedModel& model, const ClassDetails& details)
      : id_(std::move(id)), model_(model), details_(details) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    const ClassRules& rules = model_.classes;
    append_head(out, id_, model_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const std::vector<float>& scores = choices[i].vector;
      const auto best = static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
      fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"label":{},"probs":)", i > 0 ? "," : "", i,
                     json::quoted(rules.labels[best]));
      append_numbers(out, activated(scores, details_.activates ? rules.activation : ScoreActivation::kNone));
      fmt::format_to(std::back_inserter(out), R"(,"num_classes":{})", scores.size());
      if (details_.logits) {
        out += R"(,"logits":)";
        append_numbers(out, scores);
      }
      out += '}';
    }
    out += "],";
    append_usage(out, usage);
    out += '}';
  }

 private:
  const std::string id_;
  const ServedModel& model_;
  const ClassDetails details_;
};

class Classify final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "classify-"; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  std::size_t recalled_bytes(const Value& body, std::string_view) const override { return repeated_bytes(body); }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_scored(body, model, true); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return std::make_unique<ClassFormat>(id, model, static_cast<const ClassDetails&>(*call.details));
  }
};

// The score itself where there is one, else the list of them.
class RewardFormat final : public WholeFormat {
 public:
  RewardFormat(std::string id, const ServedModel& model) : id_(std::move(id)), model_(model) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    append_head(out, id_, model_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const std::vector<float>& scores = choices[i].vector;
      fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"object":"reward","score":)", i > 0 ? "," : "", i);
      if (scores.size() == 1) {
        json::append_float(out, scores.front());
      } else {
        append_numbers(out, scores);
      }
      out += '}';
    }
    out += "],";
    append_usage(out, usage);
    out += '}';
  }

 private:
  const std::string id_;
  const ServedModel& model_;
};

class Reward final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "reward-"; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  std::size_t recalled_bytes(const Value& body, std::string_view) const override { return repeated_bytes(body); }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_scores_alone(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall&) const override {
    return std::make_unique<RewardFormat>(id, model);
  }
};

// vLLM's: data holds vectors, probabilities or scores, whatever the task is.
class PoolingFormat final : public WholeFormat {
 public:
  PoolingFormat(std::string id, const ServedModel& model, ScoreActivation activation)
      : id_(std::move(id)), model_(model), activation_(activation) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    append_head(out, id_, model_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"object":"pooling","data":)", i > 0 ? "," : "", i);
      append_numbers(out, activated(choices[i].vector, activation_));
      out += '}';
    }
    out += "],";
    append_usage(out, usage);
    out += '}';
  }

 private:
  const std::string id_;
  const ServedModel& model_;
  const ScoreActivation activation_;
};

struct PoolingDetails final : DialectDetails {
  enum class Task : std::uint8_t { kEmbed, kTokenEmbed, kClassify, kReward };
  Task task = Task::kEmbed;
  bool activates = true;  // of kClassify
};

Result<PoolingDetails::Task> take_task(Value& body, const ServedModel& model) {
  using Task = PoolingDetails::Task;
  const std::optional<Value> given = take(body, "task");
  if (!given) return model.classes ? Task::kReward : Task::kEmbed;
  const Result<std::string> name = json::read_string(*given, "task");
  if (!name) return name.error();
  constexpr std::array kTasks = {std::pair{std::string_view("embed"), Task::kEmbed},
                                 std::pair{std::string_view("token_embed"), Task::kTokenEmbed},
                                 std::pair{std::string_view("classify"), Task::kClassify},
                                 std::pair{std::string_view("reward"), Task::kReward}, std::pair{std::string_view("score"), Task::kReward}};
  for (const auto& [own, task] : kTasks)
    if (own == *name) return task;
  return invalid_argument("'task' must be one of 'embed', 'token_embed', 'classify', 'reward' and 'score'", "task");
}

class PoolingDialect final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "pool-"; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  std::size_t recalled_bytes(const Value& body, std::string_view) const override { return repeated_bytes(body); }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override {
    const auto task = take_task(body, model);
    if (!task) return task.error();
    using Task = PoolingDetails::Task;
    const bool gives_vectors = *task == Task::kEmbed || *task == Task::kTokenEmbed;
    Result<Wish> wish = gives_vectors ? openai::read_embeddings(body, model) : read_scores_alone(body, model);
    if (!wish) return wish;
    if (*task == Task::kTokenEmbed) wish->pooling = Pooling::kEach;
    if (gives_vectors) return wish;  // its details say what becomes of a vector
    const auto details = std::make_shared<PoolingDetails>();
    details->task = *task;
    details->activates = static_cast<const ClassDetails&>(*wish->details).activates;
    wish->details = details;
    return wish;
  }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    if (call.pooled_output == PooledOutput::kVector) return openai::embeddings_format(model, call, {"pooling", "data"});
    const auto& details = static_cast<const PoolingDetails&>(*call.details);
    const bool activates = details.task == PoolingDetails::Task::kClassify && details.activates;
    return std::make_unique<PoolingFormat>(id, model, activates ? model.classes.activation : ScoreActivation::kNone);
  }
};

}  // namespace

std::unique_ptr<const Dialect> classify() { return std::make_unique<Classify>(); }
std::unique_ptr<const Dialect> reward() { return std::make_unique<Reward>(); }
std::unique_ptr<const Dialect> pooling() { return std::make_unique<PoolingDialect>(); }

}  // namespace braid::net::scores
