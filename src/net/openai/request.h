// Bodies of POST /v1/completions and /v1/chat/completions.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/wish/parameters.h"
#include "net/wish/wish.h"

#include <span>
#include <string>
#include <string_view>

namespace braid::net::openai {

// kInvalidArgument with the path of the offending field. What OpenAI
// documents and this server lacks is refused when it would change the answer; fields that nobody documents are ignored. The body
// is an object; they may move out of it.
Result<Wish> read_completion(Value& body, const ServedModel& model);
Result<Wish> read_chat(Value& body, const ServedModel& model);

// {"input": text or token ids}: scores the input and samples nothing.
Result<Wish> read_scored(Value& body, const ServedModel& model);

// A string, token ids, or a list of either: the prompts of what is no chat.
Result<void> read_prompt(wish::BodyFields& fields, Value& value, const std::string& path);

// The wish for these prompts and no answer: of the common parameters, those about an answer mean nothing. `field` is where they stood.
Wish unanswered(wish::BodyFields& fields, std::string_view field);

// What each of them takes of its own, beside what it shares with the others (wish/parameters.h).
std::span<const wish::Parameter> completion_parameters();
std::span<const wish::Parameter> chat_parameters();  // but for tools
std::span<const wish::Parameter> tool_parameters();

}  // namespace braid::net::openai
