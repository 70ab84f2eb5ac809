// Bodies of POST /v1/messages and /v1/messages/count_tokens. Specification: Anthropic's API reference, "Messages".
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/anthropic/context_edits.h"
#include "net/wish/wish.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace braid::net::anthropic {

// What the answer tells of its request.
struct MessageDetails final : DialectDetails {
  std::optional<std::vector<AppliedEdit>> applied_edits;  // nullopt: it has no context_management
  bool hides_thinking = false;                            // the client gets thoughts sealed
};

// The body, an object, becomes a wish; they may move out of it. Errors name Anthropic's fields, such as messages[1].content[0].text.
Result<Wish> read_message(Value& body, const ServedModel& model);

// The same for counting: max_tokens may be absent.
Result<Wish> read_count(Value& body, const ServedModel& model);

// What shows of a conversation besides its words.
struct Gleaned {
  std::vector<std::string> left_out;       // kinds of blocks and edits that say nothing to a model of text
  std::set<std::string> referenced_tools;  // by tool_reference
};

// Appends the chat messages that one message of the dialect stands for: a user's tool results become messages of their own.
Result<void> append_message(ValueList& chat, const Value& message, const std::string& path, Gleaned& gleaned);

// A string, or the text of a list of text blocks.
Result<std::string> block_text(const Value& content, const std::string& path);

// Of a system's text: what stands behind the lines that change from turn to turn.
std::string without_header_lines(std::string text);
// Has a mark where the client wants its prompt cached ("cache_control").
bool is_marked(const Value& block);

}  // namespace braid::net::anthropic
