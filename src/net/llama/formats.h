// How llama-server writes its answers.
#pragma once

#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"

#include <memory>
#include <string>
#include <vector>

namespace braid::net::llama {

struct CompletionDetails final : DialectDetails {
  bool tells_tokens = false;         // "tokens" has the answer's ids
  std::vector<std::string> prompts;  // as text
};

struct EmbeddingDetails final : DialectDetails {
  int norm = 2;  // by which vectors are made equally long; 0: their largest value is that of 16 bits, -1: they stay
};

// An object for each choice, in an array where there are several; events without an end mark. call.details are a CompletionDetails.
std::unique_ptr<AnswerFormat> completion_format(const ServedModel& model, const GenerationCall& call);

// [{"index":0,"embedding":[[…]]}]; call.details are an EmbeddingDetails.
std::unique_ptr<AnswerFormat> embedding_format(const ServedModel& model, const GenerationCall& call);

}  // namespace braid::net::llama
