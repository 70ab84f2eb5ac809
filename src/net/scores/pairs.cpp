// /v1/rerank and /v1/score: how well two texts fit.
#include "net/generation/answering_model.h"
#include "net/generation/whole_format.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/json/write_value.h"
#include "net/scores/dialects.h"
#include "net/scores/fields.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::scores {
namespace {

constexpr std::size_t kMostPairs = 1024;

Result<void> check_repeated(const std::string& text, std::size_t others, const char* field) {
  if (text.size() <= kMostRepeatedBytes / std::max<std::size_t>(others, 1)) return {};
  return invalid_argument(fmt::format("'{}' has {} bytes, and {} texts stand beside it: together more than {} MiB", field, text.size(),
                                      others, kMostRepeatedBytes >> 20U),
                          field);
}

struct RerankDetails final : DialectDetails {
  std::size_t top = 0;
  bool raw = false;
  std::vector<std::string> documents;  // as JSON, if they are to be returned
};

// A text, or an object that has one.
Result<std::string> read_document(const Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) {
    if (value.get_if<std::string>() == nullptr) return json::wrong_type(path, "a string or an object with a 'text'", value);
    return json::read_string(value, path);
  }
  const Value* text = value.find("text");
  const std::string own = json::at_key(path, "text");
  if (text == nullptr) return invalid_argument(fmt::format("'{}' is missing", own), own);
  return json::read_string(*text, own);
}

Result<std::vector<std::string>> read_documents(const Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array of strings or objects", value);
  if (list->empty()) return invalid_argument(fmt::format("'{}' is empty", path), path);
  if (list->size() > kMostPairs)
    return invalid_argument(fmt::format("'{}' has {} texts, at most {} may be given", path, list->size(), kMostPairs), path);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto text = read_document((*list)[i], json::at_index(path, i));
    if (!text) return text.error();
    texts.push_back(std::move(*text));
  }
  return texts;
}

// A text as an object, and an object with all that it has.
std::string returned_form(const Value& document) {
  if (const auto* text = document.get_if<std::string>()) return R"({"text":)" + json::quoted(*text) + "}";
  std::string object;
  json::append_value(object, document);
  return object;
}

Result<std::string> take_text(Value& body, std::string_view name) {
  const std::optional<Value> given = take(body, name);
  if (!given) return std::string();
  return json::read_string(*given, std::string(name));
}

Result<Wish> read_rerank(Value& body, const ServedModel& model) {
  if (const Result<void> fit = need_one_score(model); !fit) return fit.error();
  wish::BodyFields fields(model);
  const auto details = std::make_shared<RerankDetails>();
  if (body.find("query") == nullptr) return invalid_argument("'query' is missing", "query");
  const Result<std::string> query = take_text(body, "query");
  if (!query) return query.error();
  const std::optional<Value> given = take(body, "documents");
  if (!given) return invalid_argument("'documents' is missing", "documents");
  Result<std::vector<std::string>> documents = read_documents(*given, "documents");
  if (!documents) return documents.error();
  const Result<bool> returned = take_flag(body, "return_documents", false);
  if (!returned) return returned.error();
  const Result<bool> raw = take_flag(body, "raw_scores", false);
  if (!raw) return raw.error();
  details->raw = *raw;
  details->top = documents->size();
  if (const std::optional<Value> top = take(body, "top_n")) {
    const Result<std::int64_t> count = json::read_integer(*top, "top_n", 1);
    if (!count) return count.error();
    details->top = std::min(details->top, static_cast<std::size_t>(*count));
  }
  if (*returned)
    for (const Value& document : *given->get_if<ValueList>()) details->documents.push_back(returned_form(document));
  const Result<std::string> instruction = take_text(body, "instruction");
  if (!instruction) return instruction.error();
  if (const Result<void> fits = check_repeated(*query, documents->size(), "query"); !fits) return fits.error();
  if (const Result<void> fits = check_repeated(*instruction, documents->size(), "instruction"); !fits) return fits.error();
  std::vector<TextPair> pairs;
  for (std::string& document : *documents) pairs.push_back({*query, std::move(document)});
  put_pairs(std::move(pairs), model, *instruction, fields);
  Result<Wish> wish = wish_for_scores(body, fields, "documents");
  if (wish) wish->details = details;
  return wish;
}

class RerankFormat final : public WholeFormat {
 public:
  RerankFormat(std::string id, const ServedModel& model, std::shared_ptr<const DialectDetails> details)
      : id_(std::move(id)), model_(answering_model(model)), activation_(model.classes.relevance), details_(std::move(details)) {}

  // Best first; of equals the one that was named first.
  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    const auto& wanted = static_cast<const RerankDetails&>(*details_);
    std::vector<float> scores;
    for (const ChoiceAnswer& choice : choices) scores.push_back(choice.vector.front());
    const std::vector<float> shown = activated(scores, wanted.raw ? ScoreActivation::kNone : activation_);
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&scores](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    order.resize(wanted.top);
    fmt::format_to(std::back_inserter(out), R"({{"id":{},"model":{},"results":[)", json::quoted(id_), model_);
    for (std::size_t i = 0; i < order.size(); ++i) {
      fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"relevance_score":)", i > 0 ? "," : "", order[i]);
      json::append_float(out, shown[order[i]]);
      if (!wanted.documents.empty()) out += R"(,"document":)" + wanted.documents[order[i]];
      out += '}';
    }
    fmt::format_to(
        std::back_inserter(out),
        R"(],"meta":{{"api_version":{{"version":"2"}},"billed_units":{{"search_units":1}}}},"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})",
        usage.prompt_tokens);
  }

 private:
  const std::string id_;
  const std::string model_;
  const ScoreActivation activation_;
  const std::shared_ptr<const DialectDetails> details_;
};

class Rerank final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "rerank-"; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_rerank(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return std::make_unique<RerankFormat>(id, model, call.details);
  }
};

Result<std::vector<std::string>> take_texts(Value& body, std::string_view name, std::string_view other) {
  std::optional<Value> given = take(body, name);
  std::string field(name);
  if (!given) given = take(body, field = other);
  if (!given) return invalid_argument(fmt::format("'{}' is missing", name), std::string(name));
  if (given->get_if<ValueList>() != nullptr) return read_documents(*given, field);
  auto text = read_document(*given, field);
  if (!text) return text.error();
  return std::vector<std::string>{std::move(*text)};
}

struct ScoreDetails final : DialectDetails {
  bool raw = false;
};

Result<Wish> read_score(Value& body, const ServedModel& model) {
  if (const Result<void> fit = need_one_score(model); !fit) return fit.error();
  wish::BodyFields fields(model);
  const auto details = std::make_shared<ScoreDetails>();
  const auto firsts = take_texts(body, "text_1", "queries");
  if (!firsts) return firsts.error();
  const auto seconds = take_texts(body, "text_2", "documents");
  if (!seconds) return seconds.error();
  if (firsts->size() != 1 && firsts->size() != seconds->size())
    return invalid_argument(fmt::format("'text_1' has {} texts and 'text_2' {}: give one, or as many", firsts->size(), seconds->size()),
                            "text_1");
  const Result<bool> raw = take_flag(body, "raw_scores", false);
  if (!raw) return raw.error();
  details->raw = *raw;
  const Result<std::string> instruction = take_text(body, "instruction");
  if (!instruction) return instruction.error();
  if (const Result<void> fits = check_repeated(*instruction, seconds->size(), "instruction"); !fits) return fits.error();
  if (firsts->size() == 1)
    if (const Result<void> fits = check_repeated(firsts->front(), seconds->size(), "text_1"); !fits) return fits.error();
  std::vector<TextPair> pairs;
  for (std::size_t i = 0; i < seconds->size(); ++i) pairs.push_back({(*firsts)[firsts->size() == 1 ? 0 : i], (*seconds)[i]});
  put_pairs(std::move(pairs), model, *instruction, fields);
  Result<Wish> wish = wish_for_scores(body, fields, "text_2");
  if (wish) wish->details = details;
  return wish;
}

class ScoreFormat final : public WholeFormat {
 public:
  ScoreFormat(std::string id, const ServedModel& model, bool raw)
      : id_(std::move(id)), model_(answering_model(model)), activation_(raw ? ScoreActivation::kNone : model.classes.relevance) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    fmt::format_to(std::back_inserter(out), R"({{"id":{},"object":"list","created":{},"model":{},"data":[)", json::quoted(id_),
                   static_cast<std::int64_t>(std::time(nullptr)), model_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"object":"score","score":)", i > 0 ? "," : "", i);
      json::append_float(out, activated(choices[i].vector, activation_).front());
      out += '}';
    }
    fmt::format_to(std::back_inserter(out), R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", usage.prompt_tokens);
  }

 private:
  const std::string id_;
  const std::string model_;
  const ScoreActivation activation_;
};

class Score final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "score-"; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_score(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return std::make_unique<ScoreFormat>(id, model, static_cast<const ScoreDetails&>(*call.details).raw);
  }
};

}  // namespace

std::unique_ptr<const Dialect> rerank() { return std::make_unique<Rerank>(); }
std::unique_ptr<const Dialect> score() { return std::make_unique<Score>(); }

}  // namespace braid::net::scores
