#include "app/chat_tokens.h"

#include <string>
#include <utility>

namespace braid::app {

Result<std::vector<TokenId>> chat_tokens(const text::ModelCodec& codec, ValueList messages) {
  if (!codec.has_chat_template()) return codec.encode(*messages.back().find("content")->get_if<std::string>(), EncodeOptions{});
  ChatPrompt prompt;
  prompt.messages = Value(std::move(messages));
  const Result<RenderedChat> rendered = codec.render(prompt);
  if (!rendered) return rendered.error();
  EncodeOptions encode;
  encode.add_special = false;  // the template writes them
  encode.parse_special = true;
  encode.literal = rendered->literal;
  return codec.encode(rendered->text, encode);
}

}  // namespace braid::app
