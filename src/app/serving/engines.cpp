#include "app/serving/engines.h"

#include "app/clock.h"
#include "app/warm_up.h"
#include "braid/adapters.h"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

std::string names_of(std::span<const TensorSignature> signatures) {
  std::string names;
  for (const TensorSignature& signature : signatures) names += (names.empty() ? "" : ", ") + signature.name;
  return names;
}

SlotOptions slot_options(const ServeOptions& options) {
  SlotOptions slots;
  slots.most_loaded = static_cast<std::size_t>(options.residence.max_models);
  slots.load_timeout = options.residence.load_timeout;
  slots.keep_alive = options.residence.keep_alive;
  slots.most_waiting = static_cast<std::size_t>(options.batch.max_waiting);
  slots.memory = {options.residence.memory, options.model.kv_memory};
  // That of each rank, of which this machine has several.
  if (slots.memory.pools) *slots.memory.pools *= static_cast<std::uint64_t>(std::max(1, options.model.ranks.count_here()));
  slots.any_name = options.any_model_name;
  slots.warm_up = !options.no_warmup;
  return slots;
}

}  // namespace

Engines::Engines(asio::io_context& loop, const ServeOptions& options, Hooks hooks, std::unique_ptr<kernels::ThreadTeam> team)
    : loop_(loop), options_(options), hooks_(std::move(hooks)), team_(std::move(team)), strand_(loop, hooks_.on_busy) {}

Result<std::unique_ptr<Engines>> Engines::create(asio::io_context& loop, LoadedModels models, const ServeOptions& options, Hooks hooks) {
  std::unique_ptr<Engines> engines(new Engines(loop, options, std::move(hooks), std::move(models.team)));
  engines->workshop_ = std::make_unique<LoadingThread>(loop, engines->strand_, *engines->team_, options, std::move(models.shelf));
  engines->slots_ = std::make_unique<ModelSlots>(loop, *engines->workshop_, slot_options(options), std::move(models.find),
                                                 std::move(models.found), engines->hooks_.on_changed);
  for (LoadedModel& model : models.models) {
    auto engine = make_engine(loop, engines->strand_, std::move(model), options);
    if (!engine) return engine.error();
    engines->slots_->put(std::move(*engine));
  }
  for (LoadedEncoder& model : models.encoders) engines->slots_->put(make_engine(loop, engines->strand_, std::move(model), options));
  for (LoadedNetwork& network : models.networks) engines->add(std::move(network));
  return engines;
}

void Engines::add(LoadedNetwork network) {
  auto member = std::make_unique<NetworkMember>();
  const PredictorOptions options{.most_waiting = static_cast<std::size_t>(options_.batch.max_waiting),
                                 .priority_ageing = options_.batch.priority_ageing};
  member->predictor = std::make_unique<NetworkPredictor>(loop_, strand_, network.first.network, *team_, options);
  member->served = {.id = std::move(network.id),
                    .created = now_in_unix_seconds(),
                    .parameters = network.parameters,
                    .revision = network.first.digest,
                    .predictor = member->predictor.get()};
  member->weights = std::make_unique<NetworkWeights>(network_worker_, *member->predictor, std::move(network.base), std::move(network.first),
                                                     member->served);
  member->served.weights = member->weights.get();
  networks_.push_back(std::move(member));
}

ModelDirectory Engines::directory() const {
  std::vector<const ServedModel*> models;
  for (const ServedEngine* engine : slots_->engines()) models.push_back(&engine->served());
  std::vector<const ServedNetwork*> networks;
  for (const auto& member : networks_) networks.push_back(&member->served);
  return ModelDirectory(std::move(models), options_.any_model_name, std::move(networks));
}

std::vector<std::string> Engines::descriptions() const {
  std::vector<std::string> lines;
  for (const ServedEngine* engine : slots_->engines())
    for (std::string& line : engine->description()) lines.push_back(std::move(line));
  if (!options_.models_dirs.empty())
    lines.push_back(fmt::format("{} models can be asked for, {} are loaded", slots_->known().size(), slots_->engines().size()));
  for (const auto& member : networks_)
    lines.push_back(fmt::format("network {}: {} parameters, inputs {}, outputs {}", member->served.id, member->served.parameters,
                                names_of(member->predictor->inputs()), names_of(member->predictor->outputs())));
  return lines;
}

asio::awaitable<Result<void>> Engines::load_adapters() {
  for (const AdapterOption& option : options_.adapters) {
    const std::vector<ServedEngine*> engines = slots_->engines();
    const auto found = std::ranges::find_if(engines, [&](const ServedEngine* engine) {
      return engine->served().adapters != nullptr && (option.model.empty() || engine->served().id == option.model);
    });
    if (found == engines.end())
      co_return invalid_argument(fmt::format("--lora {}: no model with the id '{}' takes adapters", option.name, option.model));
    const ServedModel& base = (*found)->served();
    WeightSource source;
    source.path = option.path;
    // Named, because g++ 12 destroys some temporaries of such an expression twice.
    asio::awaitable<Result<AdapterFacts>> loading = base.adapters->load(option.name, std::move(source), std::nullopt);
    const Result<AdapterFacts> facts = co_await std::move(loading);
    if (!facts) co_return Error{facts.error().code, fmt::format("--lora {}: {}", option.name, facts.error().message), {}};
    spdlog::info("adapter {} of {}: revision {}, rank {}, {} bytes", facts->name, base.id, facts->revision, facts->rank, facts->bytes);
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> Engines::warm_up() {
  for (ServedEngine* engine : slots_->engines()) {
    Result<void> warm = co_await engine->warm_up(kWarmUpPrompt);
    if (!warm) co_return warm;
  }
  co_return Result<void>();
}

std::string Engines::state() const {
  std::string text;
  const std::vector<ServedEngine*> engines = slots_->engines();
  for (const ServedEngine* engine : engines) {
    if (engines.size() > 1) text += fmt::format("{}{}: ", text.empty() ? "" : "; ", engine->served().id);
    text += engine->state();
  }
  for (const auto& member : networks_)
    text += fmt::format("{}{}: {} predictions", text.empty() ? "" : "; ", member->served.id, member->predictor->count());
  return text.empty() ? "no model is loaded" : text;
}

asio::awaitable<bool> Engines::drain(std::chrono::steady_clock::time_point until) {
  strand_.resume();  // or nothing would end
  for (const auto& member : networks_) member->predictor->begin_drain();
  bool all = co_await slots_->drain(until);
  for (const auto& member : networks_) {
    const bool ended = co_await member->predictor->drained(until);
    all = all && ended;
  }
  co_return all;
}

void Engines::abort_remaining(const Error& reason) {
  for (ServedEngine* engine : slots_->engines()) engine->abort_remaining(reason);
  for (const auto& member : networks_) member->predictor->abort_remaining(reason);
}

bool Engines::awaits_predecessor() const {
  return std::ranges::any_of(slots_->engines(), [](const ServedEngine* engine) { return engine->awaits_predecessor(); });
}

void Engines::take_over() {
  for (ServedEngine* engine : slots_->engines())
    if (engine->awaits_predecessor()) engine->take_over();
}

std::vector<net::FileDescriptor> Engines::copy_disk_locks() const {
  std::vector<net::FileDescriptor> locks;
  for (const ServedEngine* engine : slots_->engines())
    if (net::FileDescriptor lock = engine->copy_disk_lock(); lock.get() >= 0) locks.push_back(std::move(lock));
  return locks;
}

std::uint64_t Engines::untouched() const {
  std::uint64_t bytes = 0;
  for (const ServedEngine* engine : slots_->engines()) bytes += engine->untouched();
  return bytes;
}

}  // namespace braid::app
