// Bodies of POST /v1/completions and /v1/chat/completions.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/call.h"

#include <string>

namespace braid::net::openai {

// kInvalidArgument with the path of the offending field; kNotFound for the name of a model that is not served. What OpenAI
// documents and this server lacks is refused when it would change the answer; fields that nobody documents are ignored.
Result<GenerationCall> parse_completion(std::string& body, const ServedModel& model);
Result<GenerationCall> parse_chat(std::string& body, const ServedModel& model);

// The same from a body that is parsed already, as other dialects make one of theirs. May move out of `document`.
Result<GenerationCall> read_chat(Value& document, const ServedModel& model);

// {"input": text or token ids}: scores the input and samples nothing.
Result<GenerationCall> parse_scored(std::string& body, const ServedModel& model);

// Whether a request may call the served model `name`: its id, "default" or nothing.
bool names_model(const ServedModel& model, const std::string& name);

}  // namespace braid::net::openai
