#include "net/llama/dialects.h"

#include "net/generation/prompts.h"
#include "net/json/fields.h"
#include "net/llama/formats.h"
#include "net/openai/embeddings.h"
#include "net/openai/request.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace braid::net::llama {
namespace {

bool is_given(const Value& body, std::string_view name) {
  const Value* value = body.find(name);
  return value != nullptr && !value->is_null();
}

void set_default(ValueDict& body, std::string_view name, Value value) {
  Value* known = find_member(body, name);
  if (known == nullptr) {
    body.emplace_back(std::string(name), std::move(value));
  } else if (known->is_null()) {
    *known = std::move(value);
  }
}

// What llama-server samples with where a request and the operator are silent.
void set_defaults(Value& body, const RequestDefaults& defaults) {
  auto& members = *body.get_if<ValueDict>();
  if (!defaults.temperature) set_default(members, "temperature", 0.8);
  if (!defaults.top_k) set_default(members, "top_k", std::int64_t{40});
  if (!defaults.top_p) set_default(members, "top_p", 0.95);
  if (!defaults.min_p) set_default(members, "min_p", 0.05);
  const bool limited = is_given(body, "max_tokens") || is_given(body, "max_completion_tokens") || defaults.max_tokens;
  if (!limited) set_default(members, "n_predict", std::int64_t{-1});
}

// Ids and texts in one list are one prompt: its ids.
Result<void> join_mixed(Value& prompt, const std::string& path, const TextCodec& codec) {
  auto* list = prompt.get_if<ValueList>();
  if (list == nullptr) return {};
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Result<void> joined = join_mixed((*list)[i], json::at_index(path, i), codec);
    if (!joined) return joined;
  }
  const auto is_id = [](const Value& item) { return item.number().has_value(); };
  const auto is_text = [](const Value& item) { return item.get_if<std::string>() != nullptr; };
  if (std::ranges::none_of(*list, is_id) || std::ranges::none_of(*list, is_text)) return {};
  ValueList ids;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto* text = (*list)[i].get_if<std::string>();
    if (text == nullptr) ids.push_back(std::move((*list)[i]));
    if (text == nullptr) continue;
    const Result<std::vector<TokenId>> read = codec.encode(*text, {.add_special = i == 0, .parse_special = true});
    if (!read) return read.error();
    for (const TokenId id : *read) ids.emplace_back(std::int64_t{id});
  }
  prompt = std::move(ids);
  return {};
}

Result<Wish> read_answered(Value& body, const ServedModel& model) {
  set_defaults(body, model.defaults);
  if (Value* prompt = find_member(*body.get_if<ValueDict>(), "prompt")) {
    const Result<void> joined = join_mixed(*prompt, "prompt", *model.codec);
    if (!joined) return joined.error();
  }
  Result<Wish> wish = openai::read_completion(body, model);
  if (!wish) return wish;
  const auto details = std::make_shared<CompletionDetails>();
  details->tells_tokens = std::exchange(wish->return_token_ids, true);  // they are counted in any case
  details->prompts = prompt_texts(*model.codec, std::get<std::vector<PromptItem>>(wish->prompt));
  wish->details = details;
  wish->timings = true;
  return wish;
}

// The member `name` as text, taken out of the body; "" where there is none.
Result<std::string> take_text(ValueDict& body, std::string_view name) {
  Value* value = find_member(body, name);
  if (value == nullptr || value->is_null()) return std::string();
  Result<std::string> text = json::read_string(*value, std::string(name));
  *value = Value();
  return text;
}

// input_prefix and prompt stand before the gap, input_suffix behind it.
Result<Wish> read_infill(Value& body, const ServedModel& model) {
  auto& members = *body.get_if<ValueDict>();
  Result<std::string> prefix = take_text(members, "input_prefix");
  if (!prefix) return prefix.error();
  Result<std::string> suffix = take_text(members, "input_suffix");
  if (!suffix) return suffix.error();
  const Result<std::string> prompt = take_text(members, "prompt");
  if (!prompt) return prompt.error();
  if (const Value* extra = body.find("input_extra"); extra != nullptr && !extra->is_null() && *extra != Value(ValueList{}))
    return invalid_argument("'input_extra' is not supported by this server", "input_extra");
  if (!model.codec->infill_tokens())
    return invalid_argument("'input_suffix' is not supported by this model: it has no fill-in-the-middle tokens", "input_suffix");
  std::erase_if(members, [](const auto& member) { return member.first.starts_with("input_"); });
  set_default(members, "prompt", *prefix + *prompt);
  Result<Wish> wish = read_answered(body, model);
  if (wish) wish->suffix = std::move(*suffix);
  return wish;
}

Result<Wish> read_embedding(Value& body, const ServedModel& model) {
  auto& members = *body.get_if<ValueDict>();
  const auto details = std::make_shared<EmbeddingDetails>();
  const Result<int> norm = openai::take_norm(body, openai::kUnitNorm);
  if (!norm) return norm.error();
  details->norm = *norm;
  for (auto& [name, value] : members)
    if (name == "content") name = "input";
  Result<Wish> wish = openai::read_embeddings(body, model);
  if (wish) wish->details = details;
  return wish;
}

class LlamaDialect : public Dialect {
 public:
  std::string_view id_prefix() const override { return "cmpl-"; }
};

class Completion final : public LlamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_answered(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return completion_format(model, call);
  }
};

class Infill final : public LlamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_infill(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return completion_format(model, call);
  }
};

class Embedding final : public LlamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_embedding(body, model); }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return embedding_format(model, call);
  }
};

}  // namespace

std::unique_ptr<const Dialect> completion() { return std::make_unique<Completion>(); }
std::unique_ptr<const Dialect> infill() { return std::make_unique<Infill>(); }
std::unique_ptr<const Dialect> embedding() { return std::make_unique<Embedding>(); }

}  // namespace braid::net::llama
