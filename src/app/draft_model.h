// The small model that guesses tokens for a large one (--draft).
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "cache/prefix_index.h"
#include "files/gguf.h"
#include "kernels/kernel_table.h"
#include "model/drafting/model_drafter.h"
#include "model/families/eagle3.h"
#include "text/codec.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace braid::app {

struct Loading;

// options.draft, before anything of it is loaded.
struct OpenDraft {
  // Of a model; or a head for this model, whose memory is part of that model's; or neither: none was asked for.
  std::optional<files::GgufFile> file;
  std::shared_ptr<const model::EagleHead> eagle;
  const kernels::KernelTable* table = nullptr;  // the draft model's
  std::uint64_t fixed_bytes = 0;                // it will take, in weights that nobody has packed yet, and to compute with
  std::uint64_t block_bytes = 0;                // beside each of the large model's blocks
};

struct LoadedDraft {
  std::shared_ptr<model::ModelDrafter> drafter;  // null: there is no model
  cache::PrefixKey revision;                     // model::model_revision(), where loading.identify_kv
};

// options.draft, a model or a folder with a head for `model`.
Result<OpenDraft> open_draft(const ModelOptions& options, const files::GgufFile& model, const Loading& loading);

// It computes with loading.team and reads `codec`, that of the model: both outlive it. Its KV pool is not there yet.
Result<LoadedDraft> load_draft(OpenDraft open, const ModelOptions& options, const Loading& loading, const text::ModelCodec& codec);

}  // namespace braid::app
