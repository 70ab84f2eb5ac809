// Bodies of POST /v1/completions and /v1/chat/completions.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/call.h"

#include <string>

namespace braid::net::openai {

// kInvalidArgument with the path of the offending field; kNotFound for the name of a model that is not served. What OpenAI
// documents and this server lacks is refused when it would change the answer; fields that nobody documents are ignored. The body
// is an object; they may move out of it.
Result<GenerationCall> read_completion(Value& body, const ServedModel& model);
Result<GenerationCall> read_chat(Value& body, const ServedModel& model);

// {"input": text or token ids}: scores the input and samples nothing.
Result<GenerationCall> read_scored(Value& body, const ServedModel& model);

// Whether a request may call the served model `name`: its id, "default" or nothing.
bool names_model(const ServedModel& model, const std::string& name);

}  // namespace braid::net::openai
