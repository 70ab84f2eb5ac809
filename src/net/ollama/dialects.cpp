#include "net/ollama/dialects.h"

#include "net/ollama/line_format.h"
#include "net/ollama/request.h"

namespace braid::net::ollama {
namespace {

constexpr EventFraming kLines = {"application/x-ndjson", {}};

class OllamaDialect : public Dialect {
 public:
  std::string_view id_prefix() const override { return "ollama-"; }
  const Voice& voice() const override { return kVoice; }
  const EventFraming& framing() const override { return kLines; }
};

class Chat final : public OllamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_chat(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return line_format(model, call.wants_logprobs(), true);
  }
};

class Generate final : public OllamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_generate(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return line_format(model, call.wants_logprobs(), false);
  }
};

}  // namespace

constexpr Voice kVoice = {error_response, {}};

std::unique_ptr<const Dialect> chat() { return std::make_unique<Chat>(); }
std::unique_ptr<const Dialect> generate() { return std::make_unique<Generate>(); }

}  // namespace braid::net::ollama
