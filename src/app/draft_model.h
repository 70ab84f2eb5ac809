// The small model that guesses tokens for a large one (--draft).
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "cache/prefix_index.h"
#include "model/drafting/model_drafter.h"
#include "text/codec.h"

#include <memory>

namespace braid::app {

struct Loading;

struct LoadedDraft {
  std::shared_ptr<model::ModelDrafter> drafter;  // null: none was asked for
  cache::PrefixKey revision;                     // model::model_revision(), where loading.identify_kv
};

// options.draft. It computes with loading.team and reads `codec`, that of the model which it guesses for: both
// outlive it. Its KV pool is not there yet.
Result<LoadedDraft> load_draft(const ModelOptions& options, const Loading& loading, const text::ModelCodec& codec);

}  // namespace braid::app
