// The body of POST /v1/training/jobs.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/tunable_layer.h"
#include "braid/value.h"
#include "net/training/head_fit.h"
#include "net/training/lora_fit.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::net::training {

struct JobRequest {
  std::string adapter;                      // the name of what comes out
  std::vector<std::vector<TokenId>> texts;  // each once
  std::vector<Example> examples;            // of them
  FitOptions fit;
  std::optional<LoraOptions> lora;    // nothing: a head alone is fitted
  bool resumes = false;               // from what the job of that name before has left
  std::int32_t checkpoint_every = 0;  // epochs; 0: at the end alone
  // With `lora`, once the texts are known: what it is fitted with, and the revision of the weights that this was made of.
  std::shared_ptr<TunableLayer> layer;
  std::optional<std::string> revision;
};

// `body` is an object; it may move out of it. A text is read as /v1/rewards/score reads it: the last token's vector is what counts. Any thread.
// kInvalidArgument with the path of what is wrong.
Result<JobRequest> read_job(Value& body, const ServedModel& model);

}  // namespace braid::net::training
