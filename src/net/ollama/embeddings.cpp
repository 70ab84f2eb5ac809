#include "net/ollama/embeddings.h"

#include "net/generation/answering_model.h"
#include "net/generation/whole_format.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/ollama/dialects.h"
#include "net/ollama/options.h"
#include "net/openai/embeddings.h"
#include "net/openai/request.h"
#include "net/wish/keep_alive.h"
#include "net/wish/parameters.h"

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::ollama {
namespace {

using wish::BodyFields;
using wish::Parameter;

// A text, or a list of texts; no token ids, as the other APIs have them.
Result<void> read_input(BodyFields& fields, Value& value, const std::string& path) {
  std::vector<PromptItem>& prompts = fields.prompt.emplace();
  auto* list = value.get_if<ValueList>();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Result<std::string> text = json::read_string((*list)[i], json::at_index(path, i));
    if (!text) return text.error();
    if (text->empty()) return invalid_argument(fmt::format("'{}' is empty", json::at_index(path, i)), json::at_index(path, i));
    prompts.emplace_back(std::move(*text));
  }
  if (list != nullptr) return {};
  Result<std::string> text = json::read_string(value, path);
  if (!text) return text.error();
  if (!text->empty()) prompts.emplace_back(std::move(*text));
  return {};
}

Result<void> read_dimensions(BodyFields&, Value& value, const std::string& path) {
  const Result<std::int64_t> width = json::read_integer(value, path, 0);
  if (!width) return width.error();
  if (*width == 0) return {};
  return invalid_argument(fmt::format("'{}' is not supported: a vector is as wide as its model", path), path);
}

constexpr std::array kVectorMembers = {
    Parameter{"model", wish::accept_string},   Parameter{"truncate", wish::FlagRule{&Wish::cuts_prompt_end}},
    Parameter{"dimensions", read_dimensions},  Parameter{"options", read_options},
    Parameter{"keep_alive", check_keep_alive},
};
constexpr std::array kInput = {Parameter{"input", read_input}};
constexpr std::array kPrompt = {Parameter{"prompt", read_input}};

// `nothing` is the answer where there is no text.
Result<Wish> read(Value& body, const ServedModel& model, std::span<const Parameter> texts, std::string nothing) {
  if (model.pooling == Pooling::kEach)
    return invalid_argument("this server gives a vector for each token (--pooling none), which this route has no form for", "model");
  BodyFields fields(model);
  fields.wish.cuts_prompt_end = true;
  const std::array tables = {std::span<const Parameter>(kVectorMembers), texts};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  const std::string field(texts.front().name);
  if (!fields.prompt) return invalid_argument(fmt::format("'{}' is missing", field), field);
  const bool is_empty = fields.prompt->empty();
  const bool is_cut = fields.wish.cuts_prompt_end;
  Wish wish = openai::unanswered(fields, texts.front().name);
  wish.pooling = model.pooling;
  wish.cuts_prompt_end = is_cut;
  if (is_empty) wish.said_at_once = std::move(nothing);
  return wish;
}

class EmbedFormat final : public WholeFormat {
 public:
  explicit EmbedFormat(const ServedModel& model) : model_(answering_model(model)) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += R"({"model":)" + model_ + R"(,"embeddings":[)";
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += ',';
      openai::append_unit_vector(out, choices[i].vector);
    }
    fmt::format_to(std::back_inserter(out), R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                   static_cast<std::int64_t>((usage.prompt_ms + usage.generation_ms) * 1e6), usage.prompt_tokens);
  }

 private:
  const std::string model_;
};

class OldFormat final : public WholeFormat {
 public:
  explicit OldFormat(const ServedModel& model) : fingerprint_(model.fingerprint) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage&) override {
    out += R"({"embedding":)";
    openai::append_unit_vector(out, choices.front().vector);
    append_fingerprint(out, fingerprint_);
    out += '}';
  }

 private:
  const std::string fingerprint_;
};

class VectorsDialect : public Dialect {
 public:
  std::string_view id_prefix() const override { return "ollama-"; }
  const Voice& voice() const override { return kVoice; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  Result<std::optional<KeepAlive>> keep_alive(const Value& body) const override { return wish::keep_alive_of(body); }
};

class Embed final : public VectorsDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override {
    return ollama::read(body, model, kInput, R"({"model":)" + json::quoted(model.id) + R"(,"embeddings":[]})");
  }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall&) const override {
    return std::make_unique<EmbedFormat>(model);
  }
};

class Embeddings final : public VectorsDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override {
    return ollama::read(body, model, kPrompt, R"({"embedding":[]})");
  }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall&) const override {
    return std::make_unique<OldFormat>(model);
  }
};

}  // namespace

std::unique_ptr<const Dialect> embed() { return std::make_unique<Embed>(); }
std::unique_ptr<const Dialect> embeddings() { return std::make_unique<Embeddings>(); }

}  // namespace braid::net::ollama
