// Bodies of Ollama's /api/chat and /api/generate. Specification: Ollama's API reference.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/wish/wish.h"

namespace braid::net::ollama {

// The body, an object, becomes a wish; it may be moved out of. Streaming and the sampling of `options` that are not given are as at
// Ollama. keep_alive, and options about how a model is run, are taken without effect: a model stays loaded here, which is the answer where
// there is no prompt and no message. 'context' are tokens that the prompt goes on from.
Result<Wish> read_chat(Value& body, const ServedModel& model);
Result<Wish> read_generate(Value& body, const ServedModel& model);

}  // namespace braid::net::ollama
