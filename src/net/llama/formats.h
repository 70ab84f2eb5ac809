// How llama-server writes its answers.
#pragma once

#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"

#include <memory>

namespace braid::net::llama {

struct CompletionDetails final : DialectDetails {
  bool tells_tokens = false;  // "tokens" has the answer's ids
};

// An object for each choice, in an array where there are several; events without an end mark. call.details are a CompletionDetails.
std::unique_ptr<AnswerFormat> completion_format(const ServedModel& model, const GenerationCall& call);

// [{"index":0,"embedding":[[…]]}]
std::unique_ptr<AnswerFormat> embedding_format();

}  // namespace braid::net::llama
