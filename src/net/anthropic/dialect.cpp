#include "net/anthropic/dialect.h"

#include "net/anthropic/message_format.h"
#include "net/anthropic/request.h"

#include <fmt/format.h>

namespace braid::net::anthropic {
namespace {

class Messages final : public Dialect {
 public:
  std::string_view id_prefix() const override { return "msg_"; }
  const Voice& voice() const override { return kVoice; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view) const override { return read_message(body, model); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return message_format(id, model, call);
  }
};

// As Anthropic's clients look for it.
std::string describe_long(const LongPrompt& prompt) {
  return fmt::format("prompt is too long: {} tokens > {} maximum", prompt.tokens, prompt.most());
}

}  // namespace

constexpr Voice kVoice = {error_response, "Request-Id", describe_long, sign_error};

std::unique_ptr<const Dialect> messages() { return std::make_unique<Messages>(); }

}  // namespace braid::net::anthropic
