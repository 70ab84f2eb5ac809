#include "app/serving/loading_thread.h"

#include "app/cache_tiers.h"
#include "app/draft_model.h"
#include "app/encoder_folder.h"
#include "app/failure.h"
#include "app/load_models.h"
#include "app/memory.h"
#include "app/network_folder.h"
#include "app/served_models.h"
#include "app/serving/background.h"
#include "model/language_model.h"
#include "store/options.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <new>
#include <spdlog/spdlog.h>
#include <stdexcept>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kProgressInterval{100};

struct Cancelled : std::runtime_error {
  Cancelled() : std::runtime_error("cancelled") {}
};

// What fails on the thread is an error of the model's, and of nobody else.
template <class T, class Work>
Result<T> guarded(const Work& work) {
  try {
    return work();
  } catch (const Cancelled&) {
    return Error{ErrorCode::kDraining, "the server is shutting down", {}};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kIo, "not enough memory to load the model", {}};
  } catch (const std::exception& bug) {
    return Error{ErrorCode::kInternal, fmt::format("loading the model failed: {}", explain_failure(bug)), {}};
  }
}

template <class T, class Work>
asio::awaitable<Result<T>> run(Work work) {
  co_return guarded<T>(work);
}

asio::awaitable<void> destroy(std::shared_ptr<void> remains) {
  remains.reset();
  co_return;
}

// Of all processes of this machine together.
ModelNeeds needs_of_ranks(const model::MemoryEstimate& one, const ModelOptions& options, std::int32_t max_batch) {
  const auto here = static_cast<std::uint64_t>(options.ranks.count_here());
  ModelNeeds needs;
  needs.fixed = here * (one.weights + one.workspace);
  needs.kv = kv_demand(one, options, max_batch);
  if (here == 0) {
    needs.pool_elsewhere = options.kv_memory;
  } else {
    needs.kv.block_bytes *= here;
  }
  return needs;
}

std::uint64_t bytes_of(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::filesystem::file_size(path, error);
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    if (entry.path().extension() == ".safetensors") bytes += entry.file_size(error);
  return bytes;
}

}  // namespace

LoadingThread::LoadingThread(asio::io_context& loop, sched::ComputeStrand& strand, kernels::ThreadTeam& team, const ServeOptions& options,
                             WeightShelf shelf)
    : loop_(loop), strand_(strand), team_(team), options_(options), shelf_(std::move(shelf)) {
  give_little_weight(thread_);
}

LoadingThread::~LoadingThread() { thread_.join(); }

asio::awaitable<Result<ModelNeeds>> LoadingThread::look(const ServedModelOptions& model) {
  auto looking = [this, &model] { return look_now(model); };
  auto job = asio::co_spawn(thread_, run<ModelNeeds>(looking), asio::use_awaitable);
  co_return co_await std::move(job);
}

Result<ModelNeeds> LoadingThread::look_now(const ServedModelOptions& model) {
  file_.reset();
  const std::string& path = model.model.model;
  if (holds_network(path)) return Error{ErrorCode::kUnsupported, "it is a network, which is served when it is named at the start", {}};
  if (holds_encoder(path)) return ModelNeeds{.fixed = bytes_of(path), .has_pool = false};
  Result<files::GgufFile> file = open_model(path);
  if (!file) return file.error();
  const Result<const kernels::KernelTable*> table =
      choose_kernels(model.model, model::has_float_weights(*file, {model.model.float_type, model.model.fast_weights}));
  if (!table) return table.error();
  model::LoadOptions load = load_options(model.model, options_.batch.max_batch);
  load.threads = team_.size();
  const RankOptions& ranks = model.model.ranks;
  if (ranks.count > 1) {
    load.packing.share = ranks.share();
    load.packing.stage = ranks.stage();
  } else {
    load.state_drafts = state_drafts(options_.batch);
    load.heads = options_.batch.speculate != DraftMethod::kOff;
  }
  const Result<OpenDraft> draft = open_draft(model.model, *file, {.max_batch = options_.batch.max_batch, .team = &team_, .shelf = &shelf_});
  if (!draft) return draft.error();
  load.eagle = draft->eagle;
  const Result<model::MemoryEstimate> estimate = model::estimate_memory(*file, **table, load);
  if (!estimate) return estimate.error();
  if (ranks.count > 1) {
    file_ = std::move(*file);
    return needs_of_ranks(*estimate, model.model, options_.batch.max_batch);
  }
  const bool is_packed = shelf_.find(weights_key(model.model, **table)) != nullptr;
  file_ = std::move(*file);
  ModelNeeds needs;
  needs.fixed = (is_packed ? 0 : estimate->weights) + estimate->workspace;
  if (wants_tiers(options_)) needs.fixed += store::StoreOptions().buffer_memory;
  needs.fixed += draft->fixed_bytes;
  needs.kv = kv_demand(*estimate, model.model, options_.batch.max_batch);
  needs.kv.block_bytes += draft->block_bytes;
  return needs;
}

asio::awaitable<Result<std::uint64_t>> LoadingThread::memory_left(std::uint64_t untouched) {
  auto looking = [untouched]() -> Result<std::uint64_t> {
    const Result<MemoryLeft> left = app::memory_left(untouched);
    if (!left) return left.error();
    return left->bytes;
  };
  auto job = asio::co_spawn(thread_, run<std::uint64_t>(looking), asio::use_awaitable);
  co_return co_await std::move(job);
}

// From the thread to the loop, now and then.
files::Progress LoadingThread::tell(OnProgress on_progress) {
  return [this, on_progress = std::move(on_progress), next = std::chrono::steady_clock::time_point()](
             std::string_view what, std::uint64_t done, std::uint64_t total) mutable {
    if (is_cancelled_) throw Cancelled();
    const auto now = std::chrono::steady_clock::now();
    if (now < next && done < total) return;
    next = now + kProgressInterval;
    asio::post(loop_, [on_progress, progress = ModelProgress{std::string(what), done, total}] { on_progress(progress); });
  };
}

Result<LoadedModel> LoadingThread::load_now(const ServedModelOptions& model, const PoolBytes& pool, const OnProgress& on_progress) {
  kernels::ThreadTeam packers(team_.size());  // as nice as this thread
  const files::GgufFile file = std::move(*std::exchange(file_, std::nullopt));
  const bool has_tiers = wants_tiers(options_);
  const auto here = static_cast<std::uint64_t>(std::max(1, model.model.ranks.count_here()));  // each of which takes as much
  Result<LoadedModel> loaded = load_beside(model, file,
                                           {.max_batch = options_.batch.max_batch,
                                            .state_drafts = state_drafts(options_.batch),
                                            .heads = options_.batch.speculate != DraftMethod::kOff,
                                            .team = &team_,
                                            .packers = &packers,
                                            .shelf = &shelf_,
                                            .progress = tell(on_progress),
                                            .identify_kv = has_tiers},
                                           {.first = pool.first / here, .most = pool.most / here});
  if (loaded && model.on_loaded) model.on_loaded();
  if (!loaded || !has_tiers) return loaded;
  std::vector<net::FileDescriptor> none;
  Result<CacheTiers> opened = open_tiers(options_, *loaded, loop_, none);
  if (!opened) return opened.error();
  loaded->tiers = std::move(*opened);
  return loaded;
}

asio::awaitable<Result<std::unique_ptr<ServedEngine>>> LoadingThread::make(const ServedModelOptions& model, PoolBytes pool,
                                                                           OnProgress on_progress) {
  if (!file_) {
    auto reading = [this, &model] { return load_encoder(model, team_); };
    auto job = asio::co_spawn(thread_, run<LoadedEncoder>(reading), asio::use_awaitable);
    Result<LoadedEncoder> encoder = co_await std::move(job);
    if (!encoder) co_return encoder.error();
    co_return make_engine(loop_, strand_, std::move(*encoder), options_);
  }
  auto loading = [this, &model, pool, &on_progress] { return load_now(model, pool, on_progress); };
  auto job = asio::co_spawn(thread_, run<LoadedModel>(loading), asio::use_awaitable);
  Result<LoadedModel> loaded = co_await std::move(job);
  if (!loaded) co_return loaded.error();
  co_return make_engine(loop_, strand_, std::move(*loaded), options_);
}

asio::awaitable<void> LoadingThread::discard(std::shared_ptr<void> remains) {
  auto job = asio::co_spawn(thread_, destroy(std::move(remains)), asio::use_awaitable);
  co_await std::move(job);
}

}  // namespace braid::app
