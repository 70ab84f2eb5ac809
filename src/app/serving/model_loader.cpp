#include "app/serving/model_loader.h"

#include "app/cache_tiers.h"
#include "app/failure.h"
#include "app/load_progress.h"
#include "app/served_models.h"
#include "kernels/packed_layout.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

Result<void> add_network(const ServedModelOptions& options, std::vector<LoadedNetwork>& networks) {
  const auto type = options.model.float_type.value_or(kernels::WeightType::kF32);
  const Result<const kernels::KernelTable*> table = choose_kernels(options.model, !kernels::is_quantized(type));
  if (!table) return table.error();
  Result<LoadedNetwork> network = load_network(options.model.model, options.id, **table, type);
  if (!network) return network.error();
  networks.push_back(std::move(*network));
  return {};
}

}  // namespace

ModelLoader::ModelLoader(asio::io_context& loop, const ServeOptions& options, const ServiceManager& manager)
    : loop_(loop), options_(options), manager_(manager) {}

ModelLoader::~ModelLoader() {
  if (thread_.joinable()) thread_.join();
}

void ModelLoader::start(Inheritance inherited, std::shared_ptr<ModelRegistry> registry, Done done) {
  Error exhausted{ErrorCode::kIo, "not enough memory to load the model", {}};  // there is none left to say so then
  thread_ = std::thread([this, work = asio::make_work_guard(loop_), exhausted = std::move(exhausted), inherited = std::move(inherited),
                         registry = std::move(registry), done = std::move(done)]() mutable {
    Result<LoadedModels> loaded = [this, &exhausted, &inherited, &registry]() -> Result<LoadedModels> {
      try {
        return load(std::move(inherited), std::move(registry));
      } catch (const std::bad_alloc&) {
        return std::move(exhausted);
      } catch (const std::exception& bug) {
        return Error{ErrorCode::kInternal, fmt::format("loading the model failed: {}", explain_failure(bug)), {}};
      }
    }();
    asio::post(loop_, [this, loaded = std::move(loaded), done = std::move(done)]() mutable {
      thread_.join();
      done(std::move(loaded));
    });
  });
}

Result<LoadedModels> ModelLoader::load(Inheritance inherited, std::shared_ptr<ModelRegistry> registry) const {
  LoadProgress progress(&manager_);
  const files::Progress show = [&progress](std::string_view what, std::uint64_t done, std::uint64_t total) {
    progress.show(what, done, total);
  };
  const bool has_tiers = wants_tiers(options_);
  Result<std::unique_ptr<kernels::ThreadTeam>> team = make_team(options_.model);
  if (!team) return team.error();
  LoadedModels loaded;
  loaded.team = std::move(*team);
  loaded.found = find_models(options_, registry.get());
  if (registry != nullptr || !options_.models_dirs.empty())
    loaded.find = [&options = options_, registry] { return find_models(options, registry.get()); };
  std::vector<ServedModelOptions> language_models;
  for (ServedModelOptions& model : models_of(options_)) {
    if (holds_network(model.model.model)) {
      if (const Result<void> added = add_network(model, loaded.networks); !added) return added.error();
    } else if (holds_encoder(model.model.model)) {
      Result<LoadedEncoder> encoder = load_encoder(model, *loaded.team);
      if (!encoder) return encoder.error();
      loaded.encoders.push_back(std::move(*encoder));
    } else {
      language_models.push_back(std::move(model));
    }
  }
  auto models = load_models(language_models,
                            {.max_batch = options_.batch.max_batch,
                             .state_drafts = state_drafts(options_.batch),
                             .heads = options_.batch.speculate != DraftMethod::kOff,
                             .team = loaded.team.get(),
                             .shelf = &loaded.shelf,
                             .progress = show,
                             .identify_kv = has_tiers},
                            inherited.untouched);
  if (!models) return models.error();
  loaded.models = std::move(*models);
  if (!has_tiers) return loaded;
  for (LoadedModel& model : loaded.models) {
    Result<CacheTiers> opened = open_tiers(options_, model, loop_, inherited.disk_locks);
    if (!opened) return opened.error();
    model.tiers = std::move(*opened);
  }
  return loaded;
}

}  // namespace braid::app
