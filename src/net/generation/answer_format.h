// How a dialect writes an answer. One object per request; it keeps what is constant in the answer prepared.
#pragma once

#include <braid/result.h>
#include <braid/token_event.h>
#include <net/generation/choice_text.h>

#include <cstdint>
#include <span>
#include <string>

namespace braid::net {

struct ChoiceAnswer {
  Pending content;
  FinishReason reason = FinishReason::kStop;
};

// Members append to `out`: whole server-sent events, or for append_whole a JSON document.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  virtual void append_delta(std::string& out, std::uint32_t choice, const Pending& delta) = 0;
  // The chunk that ends a choice; `rest` has no text, but may have tokens.
  virtual void append_finish(std::string& out, std::uint32_t choice, FinishReason reason, const Pending& rest) = 0;
  virtual void append_end(std::string& out, const Usage& usage) = 0;
  virtual void append_error(std::string& out, const Error& error) = 0;

  virtual void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) = 0;
};

}  // namespace braid::net
