#include "app/serving/served_engine.h"

#include "app/clock.h"
#include "app/disk_cache.h"
#include "app/load_models.h"
#include "app/serving/background.h"
#include "app/serving/encoder_adapters.h"
#include "app/serving/memory_share.h"
#include "app/serving/model_adapters.h"
#include "app/serving/model_revisions.h"
#include "app/serving/model_weights.h"
#include "app/sight.h"
#include "app/warm_up.h"
#include "sched/encoding_engine.h"
#include "sched/scheduler.h"
#include "sched/seeing_engine.h"
#include "store/options.h"

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

using Clock = std::chrono::steady_clock;

DraftMeans draft_means(const LoadedModel& loaded, const BatchOptions& batch) {
  DraftMeans means;
  means.model = loaded.draft != nullptr || loaded.language_model->has_eagle();
  means.heads = loaded.language_model->has_heads();
  if (batch.speculate == DraftMethod::kOff) means.nothing = "this server was started with --speculate off";
  return means;
}

// What requests get that say nothing: what the server was started with, if this model has it.
DraftMethod default_method(const ServedModel& model, DraftMethod wanted) {
  const std::string refusal = model.drafts.refusal_of(wanted);
  if (refusal.empty()) return wanted;
  spdlog::warn("--speculate {}: {}: {}; it guesses from what there is", kDraftMethodNames[static_cast<std::size_t>(wanted)], model.id,
               refusal);
  return DraftMethod::kAuto;
}

std::vector<RankSeconds> seconds_of(const ranks::RemotePasses& ranks) {
  std::vector<RankSeconds> seconds;
  for (const ranks::Times& times : ranks.times()) seconds.push_back({times.compute, times.exchange});
  return seconds;
}

class LanguageEngine final : public ServedEngine {
 public:
  LanguageEngine(asio::io_context& loop, sched::ComputeStrand& strand, LoadedModel model, const sched::SchedulerOptions& options,
                 const ServeOptions& serving, std::int32_t least_blocks)
      : loop_(loop), model_(std::move(model)), least_blocks_(least_blocks),
        scheduler_(std::make_unique<sched::Scheduler>(loop, strand, *model_.language_model, options, model_.tiers.store())),
        seeing_(make_seeing(loop, strand, model_, serving.batch, *scheduler_, options)) {
    served_.id = model_.id;
    served_.created = now_in_unix_seconds();
    served_.context_length = options.context_length;
    served_.most_waiting = static_cast<std::size_t>(options.max_waiting);
    served_.architecture = model_.architecture;
    served_.bytes = model_.language_model->weight_bytes();
    served_.weight_type = model_.weight_type;
    served_.parameters = model_.language_model->parameters();
    served_.fingerprint = model_.fingerprint;
    served_.engine = scheduler_.get();
    if (seeing_ != nullptr) {
      served_.engine = seeing_.get();
      served_.images = model_.eyes.reader.get();
    }
    served_.pooling = model_.pooling;
    served_.vectors = model_.vectors;
    served_.classes = model_.classes;
    served_.pairs = model_.pairs;
    served_.settings = model_.settings;
    served_.generates = model_.generates;
    served_.defaults = or_defaults(serving.defaults, model_.defaults);
    served_.drafts = draft_means(model_, serving.batch);
    if (served_.drafts.nothing.empty()) served_.defaults.speculate = default_method(served_, serving.batch.speculate);
    served_.codec = model_.codec.get();
    served_.constraints = model_.constraints.get();
    if (model_.ranks != nullptr) served_.ranks = [ranks = model_.ranks.get()] { return seconds_of(*ranks); };
    served_.adapters = adapters_.get();
    served_.weights = weights_.get();
  }

  std::vector<std::string> description() const override {
    const std::string sight = model_.eyes.tower != nullptr ? fmt::format(", sees by {}", model_.eyes.tower->shape().encoder.family) : "";
    return {fmt::format("model {}: {}, {:.1f} million parameters, context {}, {} kernels, {} threads{}", served_.id, served_.architecture,
                        static_cast<double>(served_.parameters) / 1e6, served_.context_length, model_.table->name, model_.threads, sight),
            fmt::format("memory: {}", describe_memory(model_))};
  }

  std::string state() const override {
    const EngineStats stats = scheduler_->stats();
    return fmt::format("{} sequences run and {} wait, {} of {} KV blocks are free", stats.prefilling + stats.decoding, stats.waiting,
                       stats.blocks_free, stats.blocks_total);
  }

  EngineMemory memory() const override {
    const model::LanguageModel& model = *model_.language_model;
    const std::uint64_t buffers = model_.tiers.store() != nullptr ? store::StoreOptions().buffer_memory : 0;
    const std::uint64_t kept = revisions_->base().revision.empty() ? 0 : model.kept_bytes();
    const std::uint64_t own = model.workspace_bytes() + buffers + draft_bytes() + tower_bytes() + kept + weights_->kept_bytes();
    return {revisions_->base().decoder->weights.get(), copies_here() * model.weight_bytes(), own + ranks_here() * model_.rank_workspace,
            copies_here() * pool_bytes()};
  }

  std::uint64_t untouched() const override {
    const auto of = [this](const model::LanguageModel& model, std::uint64_t bytes) {
      return model.untouched_kv_bytes(static_cast<std::uint64_t>(blocks_) * bytes);
    };
    const std::uint64_t own = of(*model_.language_model, model_.language_model->kv_groups().block_bytes());
    return own + (draft_grows_along() ? of(model_.draft->model(), model_.draft->block_bytes()) : 0);
  }

  bool resize_pool(std::uint64_t bytes, std::function<void()> on_given_back) override {
    if (copies_here() == 0) return false;  // it takes nothing of this machine
    const std::uint64_t had = pool_bytes();
    const std::uint64_t fitting = bytes / (copies_here() * block_bytes());
    const std::uint64_t blocks = std::min<std::uint64_t>(fitting, static_cast<std::uint64_t>(model_.kv.most_blocks));
    blocks_ = scheduler_->resize(std::max(least_blocks_, static_cast<std::int32_t>(blocks)), std::move(on_given_back));
    return pool_bytes() < had;
  }

  asio::awaitable<Result<void>> warm_up(std::int32_t prompt_tokens) override {
    auto warm = app::warm_up(*scheduler_, served_.context_length, prompt_tokens);
    co_return co_await std::move(warm);
  }

  std::shared_ptr<const KeptWeights> keep_weights() const override { return weights_->keep(); }
  asio::awaitable<Result<void>> restore_weights(std::shared_ptr<const KeptWeights> kept) override {
    return weights_->restore(std::move(kept));
  }
  std::shared_ptr<const KeptAdapters> keep_adapters() const override { return adapters_->keep(); }
  asio::awaitable<void> restore_adapters(std::shared_ptr<const KeptAdapters> kept) override { return adapters_->restore(std::move(kept)); }
  asio::awaitable<Result<void>> use_adapters(std::vector<std::string> paths) override { return adapters_->use_always(std::move(paths)); }

  void begin_drain() override {
    if (model_.tiers.redis != nullptr) scheduler_->give_away_at_end();  // its clients go on elsewhere
    take_no_more();
  }
  asio::awaitable<bool> drained(Clock::time_point until) override { return seeing_ ? seeing_->drained(until) : scheduler_->drained(until); }
  void abort_remaining(const Error& reason) override {
    seeing_ ? seeing_->abort_remaining(reason) : scheduler_->abort_remaining(reason);
    rank_watch_.reset();
    if (model_.ranks != nullptr) model_.ranks->abandon();  // for an answer of which the strand may wait
  }

  asio::awaitable<std::shared_ptr<void>> end() override {
    take_no_more();
    auto drained_all = drained(Clock::time_point::max());
    co_await std::move(drained_all);
    co_await scheduler_->closed();
    seeing_.reset();
    scheduler_.reset();
    model_.tiers = {};  // they are the loop's
    weights_.reset();
    adapters_.reset();
    revisions_.reset();
    co_return std::make_shared<Remains>(std::move(model_), std::move(adapter_worker_));
  }

  void on_broken(std::function<void(const std::string& why)> tell) override {
    if (model_.ranks == nullptr) return;
    model_.ranks->on_lost([&loop = loop_, tell](const std::string& why) { asio::post(loop, [tell, why] { tell(why); }); });
    if (const int watched = ::fcntl(model_.ranks->watch().handle(), F_DUPFD_CLOEXEC, 0); watched >= 0) {
      rank_watch_.emplace(loop_, watched);
      const auto on_ended = [ranks = std::weak_ptr(model_.ranks), tell = std::move(tell)](const boost::system::error_code& error) {
        const std::shared_ptr<ranks::RemotePasses> group = error ? nullptr : ranks.lock();
        if (group == nullptr) return;
        if (const std::optional<std::string> who = group->watch().who_ended()) tell(*who);
      };
      rank_watch_->async_wait(asio::posix::stream_descriptor::wait_read, on_ended);
    }
  }

  bool awaits_predecessor() const override { return model_.tiers.disk && model_.tiers.disk->awaits_predecessor(); }
  void take_over() override {
    spdlog::info("disk cache of {}: the server before this one has ended; its folder is looked through", served_.id);
    model_.tiers.disk->take_over();
  }
  net::FileDescriptor copy_disk_lock() const override { return copy_lock(model_.tiers.disk.get()); }

 private:
  void take_no_more() {
    rank_watch_.reset();  // the loop has work while it waits
    seeing_ ? seeing_->begin_drain() : scheduler_->begin_drain();
  }

  bool draft_grows_along() const { return draft_shares_blocks(model_) && !model_.draft->has_given_up(); }
  // With what a draft has beside it.
  std::uint64_t block_bytes() const {
    return model_.language_model->kv_groups().block_bytes() + (draft_grows_along() ? model_.draft->block_bytes() : 0);
  }
  std::uint64_t draft_bytes() const {
    if (model_.draft == nullptr) return model_.language_model->eagle_bytes();
    const model::ModelDrafter& draft = *model_.draft;
    const bool has_own = !draft_shares_blocks(model_) && !draft.has_given_up();
    return draft.model().weight_bytes() + draft.model().workspace_bytes() +
           (has_own ? static_cast<std::uint64_t>(model_.kv.blocks) * draft.block_bytes() : 0);
  }
  std::uint64_t tower_bytes() const { return model_.eyes.tower != nullptr ? model_.eyes.tower->weights().encoder.bytes : 0; }
  std::uint64_t pool_bytes() const { return static_cast<std::uint64_t>(blocks_) * block_bytes(); }  // of one process

  // Processes of this machine that have weights and a pool: this one, or ranks.
  std::uint64_t ranks_here() const { return static_cast<std::uint64_t>(model_.ranks_here); }
  std::uint64_t copies_here() const { return model_.ranks == nullptr ? 1 : ranks_here(); }

  using Worker = std::unique_ptr<asio::thread_pool>;
  // The worker may still read an adapter for the model, so it ends before it.
  struct Remains {
    Remains(LoadedModel its_model, Worker its_worker) : model(std::move(its_model)), worker(std::move(its_worker)) {}
    LoadedModel model;
    Worker worker;
  };

  asio::io_context& loop_;
  LoadedModel model_;
  Worker adapter_worker_ = background_worker();
  std::int32_t blocks_ = model_.kv.blocks;  // that the pool has now
  const std::int32_t least_blocks_;
  const RunningRequests running_{
      .end = [this](const auto& is_such,
                    const Error& reason) { seeing_ ? seeing_->end_users(is_such, reason) : scheduler_->end_users(is_such, reason); },
      .change = [this](const auto& newer) { seeing_ ? seeing_->change_weights(newer) : scheduler_->change_weights(newer); }};
  std::unique_ptr<ModelRevisions> revisions_ = std::make_unique<ModelRevisions>(*adapter_worker_, *model_.language_model);
  std::unique_ptr<ModelAdapters> adapters_ = std::make_unique<ModelAdapters>(
      *adapter_worker_, *revisions_, AdapterBase{*model_.language_model, *model_.table, model_.folder, model_.weights_digest}, running_);
  std::unique_ptr<ModelWeights> weights_ = std::make_unique<ModelWeights>(*adapter_worker_, *model_.language_model, model_.tensors,
                                                                          model_.weights_digest, *revisions_, *adapters_, running_);
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::unique_ptr<sched::SeeingEngine> seeing_;               // in front of it; null: the model reads text alone
  std::optional<asio::posix::stream_descriptor> rank_watch_;  // none: it is not told, or this process computes the model
};

class EncoderEngine final : public ServedEngine {
 public:
  EncoderEngine(asio::io_context& loop, sched::ComputeStrand& strand, LoadedEncoder model, const BatchOptions& batch)
      : model_(std::move(model)), engine_(std::make_unique<sched::EncodingEngine>(
                                      loop, strand, *model_.encoder,
                                      sched::EncodingOptions{.context_length = model_.context,
                                                             .vocabulary = model_.encoder->shape().vocabulary,
                                                             .max_waiting = batch.max_waiting,
                                                             .priority_ageing = batch.priority_ageing,
                                                             .most_of_step = most_of_step(batch),
                                                             .before_steps = [team = &model_.encoder->team()] { team->pin_strand(); }})) {
    served_.id = model_.id;
    served_.created = now_in_unix_seconds();
    served_.context_length = model_.context;
    served_.most_waiting = static_cast<std::size_t>(batch.max_waiting);
    served_.architecture = model_.encoder->shape().family;
    served_.parameters = model_.encoder->weights().parameters;
    served_.bytes = model_.encoder->weights().bytes;
    served_.fingerprint = model_.fingerprint;
    served_.engine = engine_.get();
    served_.codec = model_.codec.get();
    served_.pooling = model_.pooling;
    served_.vectors = model_.vectors;
    served_.classes = model_.classes;
    served_.generates = false;
    served_.adapters = adapters_.get();
  }

  std::vector<std::string> description() const override {
    return {fmt::format("model {}: {}, {:.1f} million parameters, texts of {} tokens, vectors of {}{}", served_.id, served_.architecture,
                        static_cast<double>(served_.parameters) / 1e6, served_.context_length, served_.vectors.width,
                        served_.classes ? fmt::format(", {} classes", served_.classes.labels.size()) : "")};
  }

  std::string state() const override {
    const EngineStats stats = engine_->stats();
    return fmt::format("{} texts are computed and {} wait", stats.prefilling, stats.waiting);
  }

  EngineMemory memory() const override { return {this, served_.bytes, 0, 0}; }
  asio::awaitable<Result<void>> warm_up(std::int32_t) override { co_return Result<void>(); }

  std::shared_ptr<const KeptAdapters> keep_adapters() const override { return adapters_->keep(); }
  asio::awaitable<void> restore_adapters(std::shared_ptr<const KeptAdapters> kept) override {
    adapters_->restore(*kept);
    co_return;
  }

  void begin_drain() override { engine_->begin_drain(); }
  asio::awaitable<bool> drained(Clock::time_point until) override { return engine_->drained(until); }
  void abort_remaining(const Error& reason) override { engine_->abort_remaining(reason); }

  asio::awaitable<std::shared_ptr<void>> end() override {
    engine_->begin_drain();
    co_await engine_->drained(Clock::time_point::max());
    adapters_.reset();
    engine_.reset();
    co_return std::make_shared<Remains>(std::move(model_), std::move(adapter_worker_));
  }

 private:
  using Worker = std::unique_ptr<asio::thread_pool>;
  // The worker may still read an adapter for the model, so it ends before it.
  struct Remains {
    Remains(LoadedEncoder its_model, Worker its_worker) : model(std::move(its_model)), worker(std::move(its_worker)) {}
    LoadedEncoder model;
    Worker worker;
  };

  LoadedEncoder model_;
  Worker adapter_worker_ = background_worker();
  std::unique_ptr<sched::EncodingEngine> engine_;
  std::unique_ptr<EncoderAdapters> adapters_ = std::make_unique<EncoderAdapters>(
      *adapter_worker_,
      model::AdaptedEncoder{model_.encoder->shape(), model_.encoder->weights(), model_.encoder->table(), model_.type, model_.folder},
      model_.fingerprint, *engine_);
};

}  // namespace

Result<std::unique_ptr<ServedEngine>> make_engine(asio::io_context& loop, sched::ComputeStrand& strand, LoadedModel model,
                                                  const ServeOptions& options) {
  sched::SchedulerOptions scheduling = scheduler_options(model, options.batch, options.model.block_size);
  scheduling.disk_always = options.disk.always;
  scheduling.write_through = writes_through(options);
  if (const std::optional<Error> fault = sched::find_fault(scheduling)) return *fault;
  const KvDemand demand = demand_of(model, options.model, options.batch.max_batch);
  const auto least = static_cast<std::int32_t>(least_pool(demand) / demand.block_bytes);
  return std::unique_ptr<ServedEngine>(std::make_unique<LanguageEngine>(loop, strand, std::move(model), scheduling, options, least));
}

std::unique_ptr<ServedEngine> make_engine(asio::io_context& loop, sched::ComputeStrand& strand, LoadedEncoder model,
                                          const ServeOptions& options) {
  return std::make_unique<EncoderEngine>(loop, strand, std::move(model), options.batch);
}

}  // namespace braid::app
