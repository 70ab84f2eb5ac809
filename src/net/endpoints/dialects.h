// The dialects of one server, and what they remember.
#pragma once

#include "net/generation/dialect.h"
#include "net/responses/running.h"
#include "net/responses/store.h"
#include "net/rl/sessions.h"
#include "net/training/jobs.h"

#include <memory>

namespace braid::net {

struct Dialects {
  Dialects();

  responses::ResponseStore stored_responses;
  responses::RunningResponses running_responses;
  rl::Sessions policy_sessions;
  training::Jobs training_jobs;
  std::unique_ptr<const Dialect> completions;
  std::unique_ptr<const Dialect> chat_completions;
  std::unique_ptr<const Dialect> embeddings;
  std::unique_ptr<const Dialect> perplexity;
  std::unique_ptr<const Dialect> responses;
  std::unique_ptr<const Dialect> compaction;
  std::unique_ptr<const Dialect> messages;
  std::unique_ptr<const Dialect> llama_completion;
  std::unique_ptr<const Dialect> llama_infill;
  std::unique_ptr<const Dialect> llama_embedding;
  std::unique_ptr<const Dialect> ollama_chat;
  std::unique_ptr<const Dialect> ollama_generate;
  std::unique_ptr<const Dialect> ollama_embed;
  std::unique_ptr<const Dialect> ollama_embeddings;
  std::unique_ptr<const Dialect> rerank;
  std::unique_ptr<const Dialect> score;
  std::unique_ptr<const Dialect> classify;
  std::unique_ptr<const Dialect> reward;
  std::unique_ptr<const Dialect> pooling;
  std::unique_ptr<const Dialect> rollout;
  std::unique_ptr<const Dialect> text_policy;
};

}  // namespace braid::net
