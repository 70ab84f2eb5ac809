// A chat as Ollama has a Go template write it.
#pragma once

#include "braid/result.h"
#include "braid/text_codec.h"
#include "text/go_template/program.h"

#include <string>
#include <string_view>

namespace braid::text::go {

// Whether a template is of this kind, and not Jinja's: it has actions, and none of Jinja's statements.
bool is_go_template(std::string_view source);

// Immutable after parse: any thread.
//
// One that ranges over .Messages gets all of them; neighbours of one role are joined. An older one with .System, .Prompt and .Response is
// written once for each turn, the last time no further than .Response.
class ChatProgram {
 public:
  static Result<ChatProgram> parse(std::string_view source);

  Result<std::string> render(const ChatPrompt& prompt) const;

 private:
  explicit ChatProgram(Program program);
  Result<std::string> render_turns(ValueDict root, const ValueList& messages) const;

  Program program_;
  bool ranges_ = false;  // over .Messages
};

}  // namespace braid::text::go
