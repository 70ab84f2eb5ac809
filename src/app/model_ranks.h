// A model that several processes compute together (--ranks): what they are told, and whether it can be divided among them.
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "files/gguf.h"
#include "kernels/kernel_table.h"
#include "model/language_model.h"
#include "ranks/remote_passes.h"

#include <cstdint>
#include <memory>

namespace braid::app {

// Whether a model can be divided so: heads of keys and values evenly among the ranks of a stage, or each has all of a layer that has fewer
// than there are ranks. kInvalidArgument: with the numbers that do.
Result<void> check_division(const model::ModelShape& shape, const RankOptions& options);

struct StartedRanks {
  std::shared_ptr<ranks::RemotePasses> passes;
  std::uint64_t workspace_bytes = 0;  // of the largest of them
};

// `saves_blocks`: for a cache that is elsewhere than the pool. Starts them and lets them load; `load` is what the model is then loaded with here, without weights. On the thread that loads.
Result<StartedRanks> start_ranks(const ModelOptions& options, const files::GgufFile& file, const kernels::KernelTable& table,
                                 bool saves_blocks, model::LoadOptions& load);

}  // namespace braid::app
