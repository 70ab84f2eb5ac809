#include "app/serving/engines.h"

#include "app/disk_cache.h"
#include "app/served_models.h"
#include "app/warm_up.h"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

// What a pass over whole texts may take of the strand before others have their turn: so long an answer's next token may wait for it.
constexpr std::int32_t kMostOfStepMs = 10;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

DraftMeans draft_means(const LoadedModel& loaded, const BatchOptions& batch) {
  DraftMeans means;
  means.model = loaded.draft != nullptr;
  if (batch.speculate == DraftMethod::kOff) means.nothing = "this server was started with --speculate off";
  if (loaded.language_model->kv_groups().states.blocks() > 0)
    means.nothing = "this model has recurrent layers, whose states cannot go back behind tokens that were guessed";
  return means;
}

std::string names_of(std::span<const TensorSignature> signatures) {
  std::string names;
  for (const TensorSignature& signature : signatures) names += (names.empty() ? "" : ", ") + signature.name;
  return names;
}

}  // namespace

Engines::Engines(asio::io_context& loop, const ServeOptions& options, std::function<void()> on_busy)
    : loop_(loop), options_(options), strand_(loop, std::move(on_busy)) {}

Result<std::unique_ptr<Engines>> Engines::create(asio::io_context& loop, LoadedModels models, const ServeOptions& options,
                                                 std::function<void()> on_busy) {
  std::unique_ptr<Engines> engines(new Engines(loop, options, std::move(on_busy)));
  engines->team_ = std::move(models.team);
  for (LoadedModel& model : models.models)
    if (const Result<void> added = engines->add(std::move(model)); !added) return added.error();
  for (LoadedEncoder& model : models.encoders) engines->add(std::move(model));
  for (LoadedNetwork& network : models.networks) engines->add(std::move(network));
  return engines;
}

Result<void> Engines::add(LoadedModel model) {
  sched::SchedulerOptions options = scheduler_options(model, options_.batch, options_.model.block_size);
  options.disk_always = options_.disk.always;
  options.write_through = options_.disk.write_through;
  if (const std::optional<Error> fault = sched::find_fault(options)) return *fault;
  auto member = std::make_unique<Member>();
  member->model = std::move(model);
  const LoadedModel& loaded = member->model;
  member->scheduler = std::make_unique<sched::Scheduler>(loop_, strand_, *loaded.language_model, options, loaded.disk_cache.get());
  ServedModel& served = member->served;
  served.id = loaded.id;
  served.created = unix_seconds();
  served.context_length = options.context_length;
  served.most_waiting = static_cast<std::size_t>(options.max_waiting);
  served.architecture = loaded.architecture;
  served.bytes = loaded.language_model->weight_bytes();
  served.weight_type = loaded.weight_type;
  served.parameters = loaded.language_model->parameters();
  served.fingerprint = loaded.fingerprint;
  served.engine = member->scheduler.get();
  served.pooling = loaded.pooling;
  served.vectors = loaded.vectors;
  served.classes = loaded.classes;
  served.pairs = loaded.pairs;
  served.generates = loaded.generates;
  served.defaults = or_defaults(options_.defaults, loaded.defaults);
  served.drafts = draft_means(loaded, options_.batch);
  if (served.drafts.nothing.empty()) served.defaults.speculate = options_.batch.speculate;
  served.codec = loaded.codec.get();
  served.constraints = loaded.constraints.get();
  member->adapters = std::make_unique<ModelAdapters>(adapter_worker_, loaded.language_model->adapters(),
                                                     AdapterBase{*loaded.language_model, *loaded.table, loaded.folder});
  served.adapters = member->adapters.get();
  members_.push_back(std::move(member));
  return {};
}

void Engines::add(LoadedEncoder model) {
  auto member = std::make_unique<EncoderMember>();
  member->model = std::move(model);
  const LoadedEncoder& loaded = member->model;
  member->engine = std::make_unique<sched::EncodingEngine>(
      loop_, strand_, *loaded.encoder,
      sched::EncodingOptions{.context_length = loaded.context,
                             .vocabulary = loaded.encoder->shape().vocabulary,
                             .max_waiting = options_.batch.max_waiting,
                             .priority_ageing = options_.batch.priority_ageing,
                             .most_of_step = std::chrono::milliseconds(std::min(kMostOfStepMs, options_.batch.prefill_slice_ms)),
                             .before_steps = [this] { team_->pin_strand(); }});
  ServedModel& served = member->served;
  served.id = loaded.id;
  served.created = unix_seconds();
  served.context_length = loaded.context;
  served.most_waiting = static_cast<std::size_t>(options_.batch.max_waiting);
  served.architecture = loaded.encoder->shape().family;
  served.parameters = loaded.encoder->weights().parameters;
  served.bytes = loaded.encoder->weights().bytes;
  served.fingerprint = loaded.fingerprint;
  served.engine = member->engine.get();
  served.codec = loaded.codec.get();
  served.pooling = loaded.pooling;
  served.vectors = loaded.vectors;
  served.classes = loaded.classes;
  served.generates = false;
  encoders_.push_back(std::move(member));
}

void Engines::add(LoadedNetwork network) {
  auto member = std::make_unique<NetworkMember>();
  member->predictor = std::make_unique<NetworkPredictor>(loop_, strand_, std::move(network.network), *team_,
                                                         static_cast<std::size_t>(options_.batch.max_waiting));
  member->served = {.id = std::move(network.id),
                    .created = unix_seconds(),
                    .parameters = network.parameters,
                    .revision = std::move(network.revision),
                    .predictor = member->predictor.get()};
  networks_.push_back(std::move(member));
}

ModelDirectory Engines::directory() const {
  std::vector<const ServedModel*> models;
  for (const auto& member : members_) models.push_back(&member->served);
  for (const auto& member : encoders_) models.push_back(&member->served);
  std::vector<const ServedNetwork*> networks;
  for (const auto& member : networks_) networks.push_back(&member->served);
  return ModelDirectory(std::move(models), options_.any_model_name, std::move(networks));
}

std::vector<std::string> Engines::descriptions() const {
  std::vector<std::string> lines;
  for (const auto& member : members_) {
    const ServedModel& served = member->served;
    lines.push_back(fmt::format("model {}: {}, {:.1f} million parameters, context {}, {} kernels, {} threads", served.id,
                                served.architecture, static_cast<double>(served.parameters) / 1e6, served.context_length,
                                member->model.table->name, member->model.threads));
    lines.push_back(fmt::format("memory: {}", describe_memory(member->model)));
  }
  for (const auto& member : encoders_) {
    const ServedModel& served = member->served;
    lines.push_back(fmt::format("model {}: {}, {:.1f} million parameters, texts of {} tokens, vectors of {}{}", served.id,
                                served.architecture, static_cast<double>(served.parameters) / 1e6, served.context_length,
                                served.vectors.width, served.classes ? fmt::format(", {} classes", served.classes.labels.size()) : ""));
  }
  for (const auto& member : networks_)
    lines.push_back(fmt::format("network {}: {} parameters, inputs {}, outputs {}", member->served.id, member->served.parameters,
                                names_of(member->predictor->inputs()), names_of(member->predictor->outputs())));
  return lines;
}

asio::awaitable<Result<void>> Engines::load_adapters() {
  for (const AdapterOption& option : options_.adapters) {
    const auto is_base = [&](const auto& member) { return option.model.empty() || member->served.id == option.model; };
    const auto found = std::ranges::find_if(members_, is_base);
    if (found == members_.end())
      co_return invalid_argument(fmt::format("--lora {}: no model with the id '{}' takes adapters", option.name, option.model));
    AdapterSource source;
    source.path = option.path;
    // Named, because g++ 12 destroys some temporaries of such an expression twice.
    asio::awaitable<Result<AdapterFacts>> loading = (*found)->adapters->load(option.name, std::move(source), false);
    const Result<AdapterFacts> facts = co_await std::move(loading);
    if (!facts) co_return Error{facts.error().code, fmt::format("--lora {}: {}", option.name, facts.error().message), {}};
    spdlog::info("adapter {} of {}: revision {}, rank {}, {} bytes", facts->name, (*found)->served.id, facts->revision, facts->rank,
                 facts->bytes);
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> Engines::warm_up() {
  for (const auto& member : members_) {
    Result<void> warm = co_await app::warm_up(*member->scheduler, member->served.context_length);
    if (!warm) co_return warm;
  }
  co_return Result<void>();
}

std::string Engines::state() const {
  std::string text;
  for (const auto& member : members_) {
    const EngineStats stats = member->scheduler->stats();
    if (members_.size() > 1) text += fmt::format("{}{}: ", text.empty() ? "" : "; ", member->served.id);
    text += fmt::format("{} sequences run and {} wait, {} of {} KV blocks are free", stats.prefilling + stats.decoding, stats.waiting,
                        stats.blocks_free, stats.blocks_total);
  }
  for (const auto& member : encoders_) {
    const EngineStats stats = member->engine->stats();
    text += fmt::format("{}{}: {} texts are computed and {} wait", text.empty() ? "" : "; ", member->served.id, stats.prefilling,
                        stats.waiting);
  }
  for (const auto& member : networks_)
    text += fmt::format("{}{}: {} predictions", text.empty() ? "" : "; ", member->served.id, member->predictor->count());
  return text;
}

asio::awaitable<bool> Engines::drain(std::chrono::steady_clock::time_point until) {
  for (const auto& member : members_) member->scheduler->begin_drain();
  for (const auto& member : encoders_) member->engine->begin_drain();
  for (const auto& member : networks_) member->predictor->begin_drain();
  bool all = true;
  for (const auto& member : members_) {
    const bool ended = co_await member->scheduler->drained(until);
    all = all && ended;
  }
  for (const auto& member : encoders_) {
    const bool ended = co_await member->engine->drained(until);
    all = all && ended;
  }
  for (const auto& member : networks_) {
    const bool ended = co_await member->predictor->drained(until);
    all = all && ended;
  }
  co_return all;
}

void Engines::abort_remaining(const Error& reason) {
  for (const auto& member : members_) member->scheduler->abort_remaining(reason);
  for (const auto& member : encoders_) member->engine->abort_remaining(reason);
  for (const auto& member : networks_) member->predictor->abort_remaining(reason);
}

bool Engines::awaits_predecessor() const {
  return std::ranges::any_of(members_,
                             [](const auto& member) { return member->model.disk_cache && member->model.disk_cache->awaits_predecessor(); });
}

void Engines::take_over() {
  for (const auto& member : members_) {
    if (!member->model.disk_cache || !member->model.disk_cache->awaits_predecessor()) continue;
    spdlog::info("disk cache: the server before this one has ended; {} is looked through",
                 disk_options_of(options_.disk, member->served.id, members_.size()).directory);
    member->model.disk_cache->take_over();
  }
}

std::vector<net::FileDescriptor> Engines::copy_disk_locks() const {
  std::vector<net::FileDescriptor> locks;
  for (const auto& member : members_)
    if (net::FileDescriptor lock = copy_lock(member->model.disk_cache.get()); lock.get() >= 0) locks.push_back(std::move(lock));
  return locks;
}

std::uint64_t Engines::untouched() const {
  std::uint64_t bytes = 0;
  for (const auto& member : members_) bytes += member->model.language_model->untouched_kv_bytes(member->model.kv.bytes);
  return bytes;
}

}  // namespace braid::app
