#include "net/openai/dialects.h"

#include "net/openai/embeddings.h"
#include "net/openai/formats.h"
#include "net/openai/perplexity_format.h"
#include "net/openai/request.h"

#include <cstdint>
#include <ctime>

namespace braid::net::openai {
namespace {

AnswerIdentity identity_of(const std::string& id, const ServedModel& model) {
  return {id, static_cast<std::int64_t>(std::time(nullptr)), model.id, model.fingerprint};
}

class Completions final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "cmpl-"; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_completion(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return completion_format(identity_of(id, model), *model.codec, call);
  }
};

class ChatCompletions final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "chatcmpl-"; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_chat(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return chat_format(identity_of(id, model), *model.codec, call);
  }
};

class Embeddings final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "embd-"; }
  WorkClass work() const override { return WorkClass::kEmbedding; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_embeddings(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return embeddings_format(model, call);
  }
};

class Perplexity final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "ppl-"; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_scored(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall&) const override {
    return perplexity_format(model);
  }
};

}  // namespace

std::unique_ptr<const Dialect> completions() { return std::make_unique<Completions>(); }
std::unique_ptr<const Dialect> chat_completions() { return std::make_unique<ChatCompletions>(); }
std::unique_ptr<const Dialect> embeddings() { return std::make_unique<Embeddings>(); }
std::unique_ptr<const Dialect> perplexity() { return std::make_unique<Perplexity>(); }

}  // namespace braid::net::openai
