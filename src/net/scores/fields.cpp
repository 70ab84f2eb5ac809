#include "net/scores/fields.h"

#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/embeddings.h"
#include "net/openai/request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace braid::net::scores {
namespace {

constexpr std::string_view kInstruction = "Given a web search query, retrieve relevant passages that answer the query";

// Qwen3-Reranker's prompt, from its model card, up to the document and behind it.
std::string before_document(const std::string& query, const std::string& instruction) {
  return fmt::format(
      "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the "
      "answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: {}\n<Query>: {}\n<Document>: ",
      instruction.empty() ? kInstruction : std::string_view(instruction), query);
}
constexpr std::string_view kBehindDocument = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

std::optional<Value> take(Value& body, std::string_view name) {
  Value* const member = find_member(*body.get_if<ValueDict>(), name);
  if (member == nullptr || member->is_null()) return std::nullopt;
  return std::exchange(*member, Value());
}

Result<bool> take_flag(Value& body, std::string_view name, bool otherwise) {
  const std::optional<Value> given = take(body, name);
  if (!given) return otherwise;
  return json::read_bool(*given, std::string(name));
}

Result<Wish> wish_for_scores(Value& body, wish::BodyFields& fields, std::string_view field, std::span<const wish::Parameter> own) {
  if (const Result<void> truncated = openai::read_truncation(body, fields.wish); !truncated) return truncated.error();
  const std::array tables = {own, wish::common_parameters()};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  if (!fields.prompt) return invalid_argument(fmt::format("'{}' is missing", field), std::string(field));
  std::vector<std::string> seconds = std::move(fields.wish.second_texts);
  std::optional<ItemFrame> frame = std::move(fields.wish.frame);
  Wish wish = openai::unanswered(fields, field);
  wish.second_texts = std::move(seconds);
  wish.frame = std::move(frame);
  wish.pooling = score_pooling(fields.model);
  wish.pooled_output = PooledOutput::kScores;
  return wish;
}

Pooling score_pooling(const ServedModel& model) {
  return model.generates || model.pooling == Pooling::kEach ? Pooling::kLast : model.pooling;
}

Result<void> need_classes(const ServedModel& model) {
  if (model.classes) return {};
  return invalid_argument(
      fmt::format("the model '{}' gives no scores: this takes a model with a head for classes, such as a reranker", model.id), "model");
}

Result<void> need_one_score(const ServedModel& model) {
  if (const Result<void> has = need_classes(model); !has) return has;
  if (model.classes.labels.size() == 1) return {};
  return invalid_argument(
      fmt::format("the model '{}' has {} classes; this takes one that gives a single score", model.id, model.classes.labels.size()),
      "model");
}

void put_pairs(std::vector<TextPair> pairs, const ServedModel& model, const std::string& instruction, wish::BodyFields& fields) {
  std::vector<PromptItem>& items = fields.prompt.emplace();
  const bool judges = model.pairs == PairForm::kJudgment;
  if (judges) fields.wish.frame = ItemFrame{{}, std::string(kBehindDocument)};
  for (TextPair& pair : pairs) {
    if (judges) {
      fields.wish.frame->before.push_back(before_document(pair.first, instruction));
      items.emplace_back(std::move(pair.second));
    } else {
      items.emplace_back(std::move(pair.first));
      fields.wish.second_texts.push_back(std::move(pair.second));
    }
  }
}

std::vector<float> activated(std::span<const float> scores, ScoreActivation activation) {
  std::vector<float> values(scores.begin(), scores.end());
  if (activation == ScoreActivation::kSigmoid)
    for (float& value : values) value = static_cast<float>(sigmoid(static_cast<double>(value)));
  if (activation != ScoreActivation::kSoftmax || values.empty()) return values;
  const double top = static_cast<double>(*std::ranges::max_element(values));
  double sum = 0.0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - top);
  for (float& value : values) value = static_cast<float>(std::exp(static_cast<double>(value) - top) / sum);
  return values;
}

void append_numbers(std::string& out, std::span<const float> numbers) {
  out += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    json::append_float(out, numbers[i]);
  }
  out += ']';
}

}  // namespace braid::net::scores
