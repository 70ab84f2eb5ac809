// What an API dialect brings to a generation.
#pragma once

#include "braid/model_host.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/http/error_response.h"
#include "net/http/response.h"
#include "net/service/server_options.h"
#include "net/wish/wish.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace braid::net {

// A prompt that the context has no room for.
struct LongPrompt {
  std::size_t tokens = 0;    // of the prompt
  std::int32_t context = 0;  // tokens, prompt and answer together
  bool answer = true;        // at least one token of an answer is asked for

  std::size_t most() const { return static_cast<std::size_t>(context) - (answer ? 1 : 0); }  // tokens of a prompt that fits
};

// As OpenAI's clients look for it.
std::string describe(const LongPrompt& prompt);

// How a dialect speaks where there is no answer of its own to be written.
struct Voice {
  http::Response (*refuse)(const Error& error) = http::error_response;  // instead of an answer
  std::string_view request_id_header = {};                              // where its clients look for a request's id besides X-Request-Id
  std::string (*too_long)(const LongPrompt& prompt) = describe;         // a sentence by whose words clients shorten what they send
  void (*sign)(http::Response& refusal, std::string_view request_id) = [](http::Response&, std::string_view) {
  };  // an error that repeats it
};

inline constexpr Voice kOpenAiVoice;

// How a streamed answer is divided into events.
struct EventFraming {
  std::string_view content_type;
  std::string_view ping;  // what is sent when nothing else was for a while; empty: nothing
};

inline constexpr EventFraming kServerSentEvents = {"text/event-stream", ": ping\n\n"};

// Immutable, but for what a dialect remembers between requests, which any thread may use. Outlives all requests.
class Dialect {
 public:
  virtual ~Dialect() = default;

  virtual std::string_view id_prefix() const = 0;  // of its answers' ids, with what divides them
  virtual const Voice& voice() const { return kOpenAiVoice; }
  virtual const EventFraming& framing() const { return kServerSentEvents; }
  virtual WorkClass work() const { return WorkClass::kGeneration; }

  // The body, a JSON object, becomes a wish of `client` (access::Account::name). May move out of `body`. Any thread.
  virtual Result<Wish> read(Value& body, const ServedModel& model, std::string_view client) const = 0;

  // How long the body wants its model to stay loaded. Any thread.
  virtual Result<std::optional<KeepAlive>> keep_alive(const Value& /*body*/) const { return std::optional<KeepAlive>(); }

  // The whole answer to a body that wants nothing but its model to be unloaded, the model's id being known.
  virtual std::optional<std::string> unload_answer(const Value& /*body*/, std::string_view /*id*/) const { return std::nullopt; }

  // Of what the body does not hold but names, or has once and is read several times, so that read() takes as long as if it were there. Any
  // thread.
  virtual std::size_t recalled_bytes(const Value& /*body*/, std::string_view /*client*/) const { return 0; }

  // Loop only.
  virtual std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const = 0;
};

}  // namespace braid::net
