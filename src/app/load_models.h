// Several models into one memory.
#pragma once

#include "app/loaded_model.h"
#include "app/options.h"
#include "braid/result.h"
#include "files/progress.h"
#include "kernels/thread_team.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::app {

// Loads one after the other, then divides among their KV pools what is left. They compute with `team`, which outlives them. `progress` is
// called on this thread. `identify_kv`: for a cache that outlives the process. `untouched`: bytes that another process will still take.
// Takes as long as it takes; any thread.
Result<std::vector<LoadedModel>> load_models(std::span<const ServedModelOptions> models, std::int32_t max_batch, kernels::ThreadTeam& team,
                                             const files::Progress& progress, bool identify_kv, std::uint64_t untouched = 0);

// A model that has a process for itself.
struct SingleModel {
  std::unique_ptr<kernels::ThreadTeam> team;
  LoadedModel model;  // computes with the team
};

Result<SingleModel> load_model(const ModelOptions& options, std::int32_t max_batch, const files::Progress& progress, bool identify_kv);

}  // namespace braid::app
