// Several models into one memory.
#pragma once

#include "app/loaded_model.h"
#include "app/options.h"
#include "braid/result.h"
#include "files/progress.h"
#include "kernels/thread_team.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace braid::app {

// Loads one after the other, then divides among their KV pools what is left. They compute with loading.team, which outlives them. `untouched`:
// asked after all weights are in, bytes that another process will still take. Takes as long as it takes; any thread.
Result<std::vector<LoadedModel>> load_models(std::span<const ServedModelOptions> models, Loading loading,
                                             const std::function<std::uint64_t()>& untouched = {});

// One more, beside others that run.
Result<LoadedModel> load_beside(const ServedModelOptions& options, const files::GgufFile& file, const Loading& loading,
                                const PoolBytes& pool);

KvDemand demand_of(const LoadedModel& loaded, const ModelOptions& options, std::int32_t max_batch);

// What its pool may be made of; all but the bytes.
KvDemand kv_demand(const model::MemoryEstimate& estimate, const ModelOptions& options, std::int32_t max_batch);

// A model that has a process for itself.
struct SingleModel {
  std::unique_ptr<kernels::ThreadTeam> team;
  LoadedModel model;  // computes with the team
};

Result<SingleModel> load_model(const ModelOptions& options, std::int32_t max_batch, const files::Progress& progress, bool identify_kv);

}  // namespace braid::app
