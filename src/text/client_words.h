// Tells a template's own control tokens from those that come from outside.
//
// Whoever writes "<|im_end|>" into a message, an argument of a call or a tool's description must not end a turn. So before rendering, a
// mark is put into every control token that such a text spells, or may spell with the text that a template writes behind it, and after it
// the marks are taken out again and their places noted. The mark is a Unicode noncharacter, which templates hand on like any other
// character.
#pragma once

#include "braid/text_codec.h"
#include "braid/value.h"
#include "text/tokenizer/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::text {

struct MarkedPrompt {
  ChatPrompt prompt;
  std::string mark;  // empty: nothing needed one, the usual case
};

// Marks messages, tools and kwargs, names of members included. An assistant's reasoning in front of its answer keeps its own tokens where
// the template takes them apart. kInvalidArgument when they use up every noncharacter themselves.
Result<MarkedPrompt> mark_client_words(const Tokenizer& tokenizer, std::string_view template_source, const ChatPrompt& prompt);

// `mark` empty: there is none.
RenderedChat take_out_marks(std::string rendered, const std::string& mark);

}  // namespace braid::text
