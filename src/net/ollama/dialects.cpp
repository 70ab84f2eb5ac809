#include "net/ollama/dialects.h"

#include "net/ollama/line_format.h"
#include "net/ollama/request.h"
#include "net/wish/keep_alive.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::net::ollama {
namespace {

constexpr EventFraming kLines = {"application/x-ndjson", {}};

// Nothing is asked of the model.
bool is_empty(const Value& body, std::string_view name) {
  const Value* value = body.find(name);
  if (value == nullptr || value->is_null()) return true;
  const auto* text = value->get_if<std::string>();
  const auto* list = value->get_if<ValueList>();
  return (text != nullptr && text->empty()) || (list != nullptr && list->empty());
}

bool wants_end(const Value& body) {
  const auto kept = wish::keep_alive_of(body);
  return kept && *kept == KeepAlive::zero();
}

class OllamaDialect : public Dialect {
 public:
  std::string_view id_prefix() const override { return "ollama-"; }
  const Voice& voice() const override { return kVoice; }
  const EventFraming& framing() const override { return kLines; }
  Result<std::optional<KeepAlive>> keep_alive(const Value& body) const override { return wish::keep_alive_of(body); }
};

class Chat final : public OllamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_chat(body, model); }
  std::optional<std::string> unload_answer(const Value& body, std::string_view id) const override {
    if (!is_empty(body, "messages") || !wants_end(body)) return std::nullopt;
    return unload_line(id, true);
  }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return line_format(model, call, true);
  }
};

class Generate final : public OllamaDialect {
 public:
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_generate(body, model); }
  std::optional<std::string> unload_answer(const Value& body, std::string_view id) const override {
    if (!is_empty(body, "prompt") || !is_empty(body, "suffix") || !wants_end(body)) return std::nullopt;
    return unload_line(id, false);
  }
  std::unique_ptr<AnswerFormat> make_format(const std::string&, const ServedModel& model, const GenerationCall& call) const override {
    return line_format(model, call, false);
  }
};

}  // namespace

constexpr Voice kVoice = {error_response, {}};

std::unique_ptr<const Dialect> chat() { return std::make_unique<Chat>(); }
std::unique_ptr<const Dialect> generate() { return std::make_unique<Generate>(); }

}  // namespace braid::net::ollama
