// The messages of a chat, brought into the form that templates expect.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/images.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::net::wish {

// Where in its request the message at an index of the conversation stands: messages[1], input[3], instructions.
using MessagePath = std::function<std::string(std::size_t index)>;

// What a conversation shows.
struct Sight {
  bool sees = false;  // whether its model sees images: if not, what tools show is told to it in words
  std::vector<ShownImage> images = {};
};

// Checks a conversation in place, in which each message has a role and content as at OpenAI: content parts of type text are joined by
// newlines, and beside images, which join those of `sight`, stay parts; missing content becomes the words of a refusal, or "" where tool
// calls stand for it, a tool call's arguments become an object, and members that are null, or no tool calls, are left out. Others pass
// through. Errors name the path.
Result<void> normalize_messages(ValueList& messages, const MessagePath& path_of, Sight& sight);

// Takes the marks "cache_control" that messages and their content parts have out of them. Of each message that had one, how many come after
// it; of the last few.
std::vector<std::int32_t> take_marks(ValueList& messages);

}  // namespace braid::net::wish
