// Who answers in a chat at the terminal.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>

namespace braid::app {

// What a chat consists of, and what its answers depend on.
struct ChatState {
  std::string system;    // empty: none
  ValueDict parameters;  // by Ollama's names
  ValueList messages;    // {"role":…,"content":…}, and "images", base64, where there are any
};

class ChatPartner {
 public:
  virtual ~ChatPartner() = default;

  virtual std::string name() const = 0;  // of the model
  // Whether a parameter of that name and value is taken; a sentence else.
  virtual Result<void> check_parameter(const std::string& name, const Value& value) const = 0;
  // Answers the last message on stdout, piece by piece, and returns what was said. Ctrl-C ends it, and what was said until then counts.
  virtual Result<std::string> answer(const ChatState& state) = 0;
};

}  // namespace braid::app
