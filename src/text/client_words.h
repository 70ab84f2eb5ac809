// Tells a template's own control tokens from those that a client has written into a message.
//
// A user who writes "<|im_end|>" must not end his own turn. So before rendering, a mark is put into every control token that a user's
// or a tool's words spell, and after it the marks are taken out again and their places noted. The mark is a Unicode noncharacter,
// which templates hand on like any other character.
#pragma once

#include "braid/text_codec.h"
#include "braid/value.h"
#include "text/tokenizer/tokenizer.h"

#include <optional>
#include <string>

namespace braid::text {

struct MarkedMessages {
  Value messages;
  std::string mark;
};

// Nothing when no message needs a mark, the usual case. kInvalidArgument when the messages use up every noncharacter themselves.
Result<std::optional<MarkedMessages>> mark_client_words(const Tokenizer& tokenizer, const Value& messages);

// `mark` empty: there is none.
RenderedChat take_out_marks(std::string rendered, const std::string& mark);

}  // namespace braid::text
