// The answers of Ollama's /api/chat and /api/generate, and its errors.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/http/response.h"

#include <memory>
#include <string>
#include <string_view>

namespace braid::net::ollama {

// A stream is a line for each piece and a last one with done_reason and counts; a whole answer is the last line with all of it. With
// `chat` the text stands in a message, else in "response", and the last line has the "context", tokens of prompt and answer, if the call has
// those of the prompt. The model outlives it.
std::unique_ptr<AnswerFormat> line_format(const ServedModel& model, const GenerationCall& call, bool chat);

// The answer where nothing was asked: the model is loaded.
std::string load_line(const ServedModel& model, bool chat);

// The same where it is to be unloaded.
std::string unload_line(std::string_view id, bool chat);

// {"error":…} with the status of the error.
http::Response error_response(const Error& error);

}  // namespace braid::net::ollama
