// Tools for templates that do not take them as they are.
#pragma once

#include "braid/text_codec.h"

namespace braid::net {

// Writes the prompt's tools into its system message, with the form of a call, and calls and results of its history as plain
// messages; templates without tools would leave them out or refuse them. Does nothing where there are none.
void write_tools_as_text(ChatPrompt& prompt);

// Some templates join the arguments of earlier calls to text, and fail when those are objects: makes them JSON text. False when there
// are none.
bool write_arguments_as_text(ChatPrompt& prompt);

// Some templates write the calls of a message only where its content is none: makes it none where it is empty. False when there is
// no such message.
bool leave_out_empty_content(ChatPrompt& prompt);

}  // namespace braid::net
