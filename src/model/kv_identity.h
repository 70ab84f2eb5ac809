// What the bytes of a KV block depend on besides the tokens: a cache that outlives the process must not be read by another model.
#pragma once

#include "cache/prefix_index.h"
#include "files/gguf.h"
#include "files/progress.h"
#include "kernels/thread_team.h"
#include "model/language_model.h"

#include <string>

namespace braid::model {

// Digest of all metadata and of every tensor's name, type, shape and bytes. Reads the whole file, by the team: at some ten gigabytes
// a second where the system has it in memory, else at the rate of the disk, in which case loading finds it in memory afterwards.
// Sampling would be quicker and would not see a fine-tuning that changed a few layers. `progress` may be empty.
cache::PrefixKey model_revision(const files::GgufFile& file, kernels::ThreadTeam& team, const files::Progress& progress = {});

// Revision and layout of the pool, and the digest of a block computed here and now. So a build whose kernels round
// differently, another instruction set or another scaling of positions share no blocks, unless they give the same bits.
// The model has its pool and nothing in it. The loading thread, which is not pinned.
std::string kv_identity(const cache::PrefixKey& revision, LanguageModel& model);

}  // namespace braid::model
