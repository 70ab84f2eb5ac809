// A model's own chat template, rendered by the Jinja interpreter in jinja/ or, of Ollama's library, by that of Go's templates in go_template/.
#pragma once

#include "braid/result.h"
#include "braid/text_codec.h"

#include <memory>
#include <string>
#include <string_view>

namespace braid::text {

namespace jinja {
class Program;
}
namespace go {
class ChatProgram;
}

// Immutable after parse: render() may be called from any thread.
class ChatTemplate {
 public:
  // kInvalidArgument with line and construct when the source uses what the interpreter does not know.
  static Result<ChatTemplate> parse(std::string_view source, std::string bos_token, std::string eos_token);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  Result<std::string> render(const ChatPrompt& prompt) const;

  // Whether it is Go's, which takes roles in any order.
  bool is_go() const { return go_ != nullptr; }

 private:
  ChatTemplate(std::unique_ptr<const jinja::Program> program, std::string bos_token, std::string eos_token);
  explicit ChatTemplate(std::unique_ptr<const go::ChatProgram> program);
  std::unique_ptr<const jinja::Program> program_;
  std::string bos_token_, eos_token_;
  std::unique_ptr<const go::ChatProgram> go_;  // in its place
};

}  // namespace braid::text
