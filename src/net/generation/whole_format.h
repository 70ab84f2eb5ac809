// The format of answers that are never streamed.
#pragma once

#include "net/generation/answer_format.h"

#include <stdexcept>

namespace braid::net {

class WholeFormat : public AnswerFormat {
 public:
  void append_delta(std::string&, std::uint32_t, const Delta&, const DeltaTokens&, const Usage&) final { not_streamed(); }
  void append_finish(std::string&, std::uint32_t, const ChoiceEnd&, const DeltaTokens&, const Usage&) final { not_streamed(); }
  void append_end(std::string&, const Usage&) final { not_streamed(); }
  void append_error(std::string&, const Error&) final { not_streamed(); }

 private:
  [[noreturn]] static void not_streamed() { throw std::logic_error("vectors and scores are never streamed"); }
};

}  // namespace braid::net
