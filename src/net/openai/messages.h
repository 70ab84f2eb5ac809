// The `messages` of a chat, brought into the form that templates expect.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>

namespace braid::net::openai {

// Checks a conversation in place: content parts of type text are joined by newlines, missing content becomes the words of a refusal,
// or "" where tool calls stand for it, a tool call's arguments become an object, and members that are null, or no tool calls, are
// left out. Others pass through. Errors name the path, as `messages[1].content`.
Result<void> normalize_messages(Value& messages, const std::string& path);

}  // namespace braid::net::openai
