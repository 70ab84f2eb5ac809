// The small model that guesses tokens for a large one (--draft).
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "model/drafting/model_drafter.h"
#include "text/codec.h"

#include <memory>

namespace braid::app {

struct Loading;

// options.draft, or null where that is empty. It computes with loading.team and reads `codec`, that of the model which it guesses for: both
// outlive it. Its KV pool is not there yet.
Result<std::shared_ptr<model::ModelDrafter>> load_draft(const ModelOptions& options, const Loading& loading, const text::ModelCodec& codec);

}  // namespace braid::app
