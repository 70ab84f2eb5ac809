// From a file (or the embedded bytes) to a model that can compute.
#pragma once

#include "app/cache_tiers.h"
#include "app/eyes.h"
#include "app/memory.h"
#include "app/options.h"
#include "app/weight_shelf.h"
#include "braid/pooled_model.h"
#include "braid/request_defaults.h"
#include "braid/result.h"
#include "cache/prefix_index.h"
#include "files/gguf.h"
#include "files/progress.h"
#include "grammar/compiler.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/drafting/model_drafter.h"
#include "model/language_model.h"
#include "model/loaded_tensors.h"
#include "ranks/remote_passes.h"
#include "sched/options.h"
#include "text/codec.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace braid::app {

// Weights, KV arena and codec. Immutable here; the strand computes with `language_model`.
struct LoadedModel {
  std::string id;
  std::string architecture;
  std::string folder;                                       // of the hub, that it was loaded from; empty: it was a file
  std::string weight_type;                                  // of most weights, by its GGUF name
  RequestDefaults defaults;                                 // of the model's own files
  Pooling pooling = Pooling::kLast;                         // of vectors, as the model's own files have it
  std::shared_ptr<const ModelSettings> settings = nullptr;  // ServedModel::settings
  VectorRules vectors;
  ClassRules classes;
  PairForm pairs = PairForm::kPair;
  bool generates = true;
  std::unique_ptr<const text::ModelCodec> codec;
  std::unique_ptr<const grammar::Compiler> constraints;  // refers to the codec
  std::shared_ptr<model::ModelDrafter> draft;            // the language model's too; null: none
  std::shared_ptr<ranks::RemotePasses> ranks;            // that compute it; null: this process does
  std::int32_t ranks_here = 0;                           // of them, on this machine: each has weights, pool and workspace of its own
  std::uint64_t rank_workspace = 0;                      // bytes of that, of one of them
  std::unique_ptr<model::LanguageModel> language_model;
  std::shared_ptr<const model::LoadedTensors> tensors;
  std::string weights_digest;  // model_digest()
  Eyes eyes;
  KvBudget kv;
  cache::PrefixKey model_revision;  // digest of the file; of no meaning unless asked for, as the next ones
  cache::PrefixKey draft_revision;  // and of the draft's
  std::string kv_identity;          // see model/kv_identity.h
  CacheTiers tiers;
  const kernels::KernelTable* table = nullptr;
  std::string fingerprint;
  int threads = 1;
};

// A Hugging Face folder, as the file that a converter would make of it; its tensors stay mapped where they are.
Result<files::GgufFile> open_folder(const std::string& path);

// The file or the folder, or the embedded model when `path` is empty.
Result<files::GgufFile> open_model(const std::string& path);

// kInvalidArgument: this machine lacks what was asked for. A tier that is asked for computes float weights its own way (kernels/select.h).
Result<const kernels::KernelTable*> choose_kernels(const ModelOptions& options, bool float_weights);

// Guesses of a step that a model with recurrent layers verifies: what eight clients may want at once.
std::int32_t state_drafts(const BatchOptions& batch);

model::LoadOptions load_options(const ModelOptions& options, std::int32_t max_batch);

// What general.sampling.* of the metadata say (generation_config.json of a folder). Values that no request could have are left out.
RequestDefaults sampling_defaults(const files::GgufFile& file);

// The operator's go before a model's.
RequestDefaults or_defaults(RequestDefaults own, const RequestDefaults& others);

// Whether its draft's keys and values lie beside its blocks (model/drafting/model_drafter.h).
bool draft_shares_blocks(const LoadedModel& loaded);

// The threads that compute, as the options have them.
Result<std::unique_ptr<kernels::ThreadTeam>> make_team(const ModelOptions& options);

// How models are loaded.
struct Loading {
  std::int32_t max_batch = 256;
  std::int32_t state_drafts = 0;           // model::LoadOptions::state_drafts
  bool heads = false;                      // model::LoadOptions::heads
  kernels::ThreadTeam* team = nullptr;     // that computes with them, and outlives them
  kernels::ThreadTeam* packers = nullptr;  // that pack their weights; null: `team`, which computes nothing meanwhile
  WeightShelf* shelf = nullptr;            // null: nobody else has the same weights
  files::Progress progress = {};           // called on the thread that loads
  bool identify_kv = false;                // for a cache that outlives the process: model_revision is wanted
  std::uint64_t untouched = 0;             // bytes that have been promised to others and count as taken
};

// All but the KV pool and what follows from it.
Result<LoadedModel> load_weights(const ModelOptions& options, const files::GgufFile& file, const Loading& loading);

// "weights 30.0 MiB, KV pool 3.50 GiB (262144 tokens), workspace 12.1 MiB".
std::string describe_memory(const LoadedModel& loaded);

sched::SchedulerOptions scheduler_options(const LoadedModel& loaded, const BatchOptions& batch, std::int32_t block_tokens);

}  // namespace braid::app
