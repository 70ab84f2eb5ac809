// The small model that guesses tokens for a large one (--draft).
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "cache/prefix_index.h"
#include "files/gguf.h"
#include "model/drafting/model_drafter.h"
#include "model/families/eagle3.h"
#include "text/codec.h"

#include <cstdint>
#include <memory>

namespace braid::app {

struct Loading;

struct LoadedDraft {
  std::shared_ptr<model::ModelDrafter> drafter;   // null: none was asked for, or
  std::shared_ptr<const model::EagleHead> eagle;  // it is a head for this model
  cache::PrefixKey revision;                      // model::model_revision(), where loading.identify_kv
};

// options.draft, a model or a folder with a head for `model`. It computes with loading.team and reads `codec`, that of the model: both
// outlive it. Its KV pool is not there yet.
Result<LoadedDraft> load_draft(const ModelOptions& options, const Loading& loading, const files::GgufFile& model,
                               const text::ModelCodec& codec);

// What a draft has beside each block of the model's pool; 0: nothing, or it is a head for the model. Reads no weights.
Result<std::uint64_t> draft_block_bytes(const ModelOptions& options, std::int32_t max_batch, int threads, const files::GgufFile& model);

}  // namespace braid::app
