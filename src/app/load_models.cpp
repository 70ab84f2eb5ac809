#include "app/load_models.h"

#include "app/disk_cache.h"
#include "app/embedded_model.h"
#include "app/memory.h"
#include "app/served_models.h"
#include "model/kv_identity.h"

#include <fmt/format.h>
#include <limits>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace braid::app {
namespace {

// What is left where the system says it, or else no bound but what has been asked for.
Result<MemoryLeft> memory_left_for(const ModelOptions& options, std::uint64_t untouched) {
  Result<MemoryLeft> left = memory_left(untouched);
  if (left) return left;
  if (!options.kv_memory)
    return Error{left.error().code, left.error().message + "; say with --kv-memory how much the KV pool may take", {}};
  spdlog::warn("{}: --kv-memory is taken as it is", left.error().message);
  return MemoryLeft{std::numeric_limits<std::uint64_t>::max(), {}};
}

// What a model will take that has not been touched: it counts as taken.
std::uint64_t untouched_bytes(const LoadedModel& loaded, bool identify_kv) {
  const std::uint64_t drafts = loaded.draft != nullptr ? loaded.draft->model().workspace_bytes() : 0;
  return loaded.language_model->workspace_bytes() + drafts + (identify_kv ? disk_buffer_bytes(*loaded.language_model) : 0);
}

Result<LoadedModel> load_named_weights(const ServedModelOptions& options, const files::GgufFile& file, const Loading& loading) {
  Result<LoadedModel> weights = load_weights(options.model, file, loading);
  if (!weights) return weights;
  weights->id = options.id;
  if (options.pooling) weights->pooling = *options.pooling;
  weights->settings = options.settings;
  return weights;
}

// Of blocks on disk, which have the draft's keys and values as well.
std::string identity_of(const LoadedModel& loaded) {
  std::string identity = model::kv_identity(loaded.model_revision, *loaded.language_model);
  if (draft_shares_blocks(loaded)) identity += " draft: " + model::kv_identity(loaded.draft_revision, loaded.draft->model());
  return identity;
}

// Explicit pages are taken when they are reserved; ranks, and drafts with caches of their own, take what they are told to.
Result<void> allocate_kv(LoadedModel& loaded, const KvDemand& demand, const ModelOptions& options) {
  const Result<KvBudget> budget = plan_kv(demand);
  if (!budget) return budget.error();
  model::LanguageModel& model = *loaded.language_model;
  if (budget->context < model.context_length())
    spdlog::warn("the KV pool holds {} tokens: the context is lowered to that from the model's {}", budget->context,
                 model.context_length());
  loaded.kv = *budget;
  const bool can_follow = loaded.draft == nullptr || draft_shares_blocks(loaded);
  const bool can_grow = loaded.ranks == nullptr && can_follow && options.huge_pages != files::HugePages::kExplicit && can_reserve();
  if (!can_grow) loaded.kv.most_blocks = budget->blocks;
  if (loaded.draft != nullptr)
    if (const Result<void> drafts = loaded.draft->allocate_kv(budget->blocks, loaded.kv.most_blocks); !drafts) return drafts.error();
  return model.allocate_kv(budget->blocks, model::LanguageModel::Prefault::kInBackground, loaded.kv.most_blocks);
}

// Of a model that ranks compute each of them takes as much: what is left is divided among those of this machine.
Result<std::uint64_t> pool_memory(const ModelOptions& options, const MemoryLeft& left) {
  const std::int32_t here = options.ranks.count_here();
  if (here == 0) return options.kv_memory.value();  // without which such a server does not start
  return kv_memory({left.bytes / static_cast<std::uint64_t>(here), left.bound}, options.kv_memory);
}

// All pools together take what one would.
Result<void> divide_kv(std::vector<LoadedModel>& loaded, std::span<const ServedModelOptions> models, std::int32_t max_batch,
                       const MemoryLeft& left) {
  const Result<std::uint64_t> bytes = pool_memory(models.front().model, left);
  if (!bytes) return bytes.error();
  std::vector<KvDemand> demands;
  std::vector<std::uint64_t> most;
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    demands.push_back(demand_of(loaded[i], models[i].model, max_batch));
    most.push_back(most_usable(demands.back()));
  }
  const std::vector<std::uint64_t> parts = divide_memory(*bytes, most);
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    demands[i].bytes = parts[i];
    demands[i].most_bytes = *bytes;
    const Result<void> allocated = allocate_kv(loaded[i], demands[i], models[i].model);
    if (allocated) continue;
    Error error = allocated.error();
    if (loaded.size() > 1) error.message = fmt::format("{}: {}", loaded[i].id, error.message);
    return error;
  }
  return {};
}

}  // namespace

KvDemand kv_demand(const model::MemoryEstimate& estimate, const ModelOptions& options, std::int32_t max_batch) {
  KvDemand demand;
  demand.block_bytes = estimate.kv_block;
  demand.block_tokens = options.block_size;
  demand.groups = estimate.kv_groups;
  demand.state_blocks = estimate.state_blocks;
  demand.max_batch = max_batch;
  demand.model_context = estimate.context;
  demand.asked_context = options.context;
  return demand;
}

KvDemand demand_of(const LoadedModel& loaded, const ModelOptions& options, std::int32_t max_batch) {
  const model::LanguageModel& model = *loaded.language_model;
  return kv_demand({.kv_block = model.kv_groups().block_bytes() + (loaded.draft != nullptr ? loaded.draft->block_bytes() : 0),
                    .context = model.context_length(),
                    .kv_groups = model.kv_groups().visibilities(),
                    .state_blocks = model.kv_groups().states.blocks()},
                   options, max_batch);
}

Result<std::vector<LoadedModel>> load_models(std::span<const ServedModelOptions> models, Loading loading,
                                             const std::function<std::uint64_t()>& untouched) {
  std::vector<LoadedModel> loaded;
  if (models.empty()) return loaded;
  const std::uint64_t others = untouched ? untouched() : 0;
  std::uint64_t own = loading.untouched;
  for (const ServedModelOptions& model : models) {
    const Result<files::GgufFile> file = open_model(model.model.model);
    if (!file) return file.error();
    loading.untouched = own + others;
    Result<LoadedModel> weights = load_named_weights(model, *file, loading);
    if (!weights) return weights.error();
    own += untouched_bytes(*weights, loading.identify_kv);
    loaded.push_back(std::move(*weights));
  }
  const Result<MemoryLeft> left = memory_left_for(models.front().model, own + (untouched ? untouched() : 0));
  if (!left) return left.error();
  if (const Result<void> divided = divide_kv(loaded, models, loading.max_batch, *left); !divided) return divided.error();
  for (LoadedModel& model : loaded)
    if (loading.identify_kv) model.kv_identity = identity_of(model);
  return loaded;
}

Result<LoadedModel> load_beside(const ServedModelOptions& options, const files::GgufFile& file, const Loading& loading,
                                const PoolBytes& pool) {
  Result<LoadedModel> loaded = load_named_weights(options, file, loading);
  if (!loaded) return loaded;
  KvDemand demand = demand_of(*loaded, options.model, loading.max_batch);
  demand.bytes = pool.first;
  demand.most_bytes = pool.most;
  if (const Result<void> allocated = allocate_kv(*loaded, demand, options.model); !allocated) return allocated.error();
  if (loading.identify_kv) loaded->kv_identity = identity_of(*loaded);
  return loaded;
}

Result<SingleModel> load_model(const ModelOptions& options, std::int32_t max_batch, const files::Progress& progress, bool identify_kv) {
  Result<std::unique_ptr<kernels::ThreadTeam>> team = make_team(options);
  if (!team) return team.error();
  const ServedModelOptions model{.model = options, .id = model_id(options.model.empty() ? kEmbeddedModelName : options.model)};
  auto loaded =
      load_models(std::span(&model, 1), {.max_batch = max_batch, .team = team->get(), .progress = progress, .identify_kv = identify_kv});
  if (!loaded) return loaded.error();
  return SingleModel{std::move(*team), std::move(loaded->front())};
}

}  // namespace braid::app
