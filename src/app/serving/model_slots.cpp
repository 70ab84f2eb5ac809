#include "app/serving/model_slots.h"

#include "app/serving/model_adapters.h"
#include "app/serving/model_waits.h"
#include "app/warm_up.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <exception>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

// How long a load waits for pools to shrink before it looks for room elsewhere.
constexpr std::chrono::seconds kShrinkPatience{2};

Error asleep(const std::string& id) {
  return {ErrorCode::kModelNotLoaded, fmt::format("the model '{}' sleeps until POST /wake_up", id), "model"};
}

}  // namespace

ModelSlots::ModelSlots(asio::io_context& loop, Workshop& workshop, SlotOptions options, FindModels find, std::vector<FoundModel> found,
                       std::function<void()> on_changed)
    : loop_(loop), workshop_(workshop), options_(std::move(options)), find_(std::move(find)), on_changed_(std::move(on_changed)),
      room_timer_(loop), waits_timer_(loop) {
  put_found(std::move(found));
}

ModelSlots::~ModelSlots() = default;

void ModelSlots::spawn(asio::awaitable<void> coroutine) {
  asio::co_spawn(loop_, std::move(coroutine), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);  // a bug: it ends io_context::run()
  });
}

void ModelSlots::put(std::unique_ptr<ServedEngine> engine) {
  Slot* const slot = slot_of_id(engine->served().id);
  assert(slot != nullptr && "an engine of a model that is not known");
  slot->engine = std::move(engine);
  slot->state = ModelState::kLoaded;
  slot->last_used = Clock::now();
  watch(*slot);
}

std::vector<ServedEngine*> ModelSlots::engines() const {
  std::vector<ServedEngine*> engines;
  for (const auto& slot : slots_)
    if (slot->state == ModelState::kLoaded) engines.push_back(slot->engine.get());
  return engines;
}

std::size_t ModelSlots::loaded() const {
  return static_cast<std::size_t>(std::ranges::count_if(slots_, [](const auto& slot) { return slot->engine != nullptr || slot->leaving; }));
}

std::vector<KnownModel> ModelSlots::known() const {
  std::vector<KnownModel> known;
  for (const auto& slot : slots_) {
    if (slot->is_gone) continue;
    KnownModel& model = known.emplace_back();
    model.id = slot->id();
    model.aliases = slot->found.aliases;
    model.source = slot->found.options.model.model;
    model.bytes = slot->found.bytes;
    model.modified = slot->found.modified;
    model.state = slot->state;
    model.expires = slot->expires;
    model.failure = slot->failure;
    if (slot->state != ModelState::kLoaded) continue;
    const EngineMemory memory = slot->engine->memory();
    model.loaded = &slot->engine->served();
    if (const KeepAlive kept = slot->kept(options_.keep_alive); !slot->in_use.expired() && kept != kKeepForever)
      model.expires = std::chrono::system_clock::now() + kept;
    model.memory = memory.weights + memory.own + memory.kv;
  }
  return known;
}

ModelSlots::Slot* ModelSlots::slot_of_id(std::string_view id) const {
  const auto found = std::ranges::find_if(slots_, [id](const auto& slot) { return slot->id() == id; });
  return found != slots_.end() ? found->get() : nullptr;
}

// Whose adapter had the name, or its base's with it, when it was unloaded.
ModelSlots::Slot* ModelSlots::slot_of_adapter(std::string_view name) const {
  for (const auto& slot : slots_) {
    if (slot->is_gone || slot->adapters == nullptr || slot->state == ModelState::kLoaded) continue;
    const bool comes_with_file = slot->weights == nullptr && !slot->adapters->revision.empty();
    for (const AdapterEntry& entry : slot->adapters->entries) {
      if (comes_with_file && is_of_newer_weights_alone(entry)) continue;
      if (entry.facts.name == name || fmt::format("{}:{}", slot->id(), entry.facts.name) == name) return slot.get();
    }
  }
  return nullptr;
}

// Without a name the first of the command line, or else what was used last, or the only one.
Result<ModelSlots::Slot*> ModelSlots::slot_of(std::string_view name) const {
  if (name.empty() || name == "default") return usual_slot();
  if (Slot* slot = slot_of_id(name); slot != nullptr && !slot->is_gone) return slot;
  if (Slot* slot = slot_of_adapter(name); slot != nullptr) return slot;
  std::vector<Slot*> slots;
  std::vector<NamedModel> named;
  for (const auto& slot : slots_) {
    if (slot->is_gone) continue;
    slots.push_back(slot.get());
    named.push_back({slot->id(), slot->found.aliases});
  }
  const Result<std::size_t> found = find_named(name, named);
  if (found) return slots[*found];
  if (options_.any_name && !slots.empty()) return slots.front();
  return found.error();
}

Result<ModelSlots::Slot*> ModelSlots::usual_slot() const {
  if (slots_.empty()) return Error{ErrorCode::kNotFound, "this server has no model", "model"};
  if (slots_.size() == 1 || slots_.front()->found.is_named) return slots_.front().get();
  Slot* last = nullptr;
  for (const auto& slot : slots_)
    if (slot->state == ModelState::kLoaded && (last == nullptr || slot->last_used > last->last_used)) last = slot.get();
  if (last != nullptr) return last;
  return Error{ErrorCode::kNotFound, fmt::format("'model' is missing, and none is loaded: name one, such as '{}'", slots_.front()->id()),
               "model"};
}

Result<std::string> ModelSlots::find(std::string_view name) const {
  const Result<Slot*> slot = slot_of(name);
  if (!slot) return slot.error();
  return (*slot)->id();
}

// In use

bool ModelSlots::is_idle(const Slot& slot) const { return slot.state == ModelState::kLoaded && slot.in_use.expired(); }

ModelHold ModelSlots::hold(Slot& slot) {
  if (ModelHold held = slot.in_use.lock()) return held;
  slot.expiry.cancel();
  slot.expires.reset();
  ModelHold held(&slot.engine->served(), [this, &slot, alive = std::weak_ptr(alive_)](const ServedModel*) {
    if (!alive.expired()) on_released(slot);
  });
  slot.in_use = held;
  return held;
}

void ModelSlots::on_released(Slot& slot) {
  slot.last_used = Clock::now();
  if (is_draining_) return;
  changed();
  if (slot.is_unwanted || slot.kept(options_.keep_alive) == KeepAlive::zero()) return begin_unloading(slot);
  arm_expiry(slot);
}

void ModelSlots::arm_expiry(Slot& slot) {
  const KeepAlive keep_alive = slot.kept(options_.keep_alive);
  slot.expiry.cancel();
  slot.expires.reset();
  if (keep_alive == kKeepForever) return;
  slot.expires = std::chrono::system_clock::now() + keep_alive;
  slot.expiry.expires_after(keep_alive);
  slot.expiry.async_wait([this, &slot, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired() || !is_idle(slot) || !slot.expires) return;
    spdlog::info("model {}: nobody has used it for a while", slot.id());
    begin_unloading(slot);
  });
}

ModelHold ModelSlots::take(std::string_view name, std::optional<KeepAlive> keep_alive) {
  const Result<Slot*> found = slot_of(name);
  if (!found || is_draining_) return nullptr;
  Slot& slot = **found;
  if (slot.state != ModelState::kLoaded || slot.is_unwanted) return nullptr;
  if (keep_alive) slot.keep_alive = keep_alive;
  slot.last_used = Clock::now();
  return hold(slot);
}

// Loading

std::shared_ptr<ModelWait> ModelSlots::ask(std::string name, std::optional<KeepAlive> keep_alive) {
  if (is_draining_) return answered(leaving());
  const Result<Slot*> slot = slot_of(name);
  auto wait = std::make_shared<ModelWait>();
  if (slot) {
    await_load(**slot, wait, keep_alive);
  } else if (find_) {
    missing_.push_back({std::move(name), keep_alive, wait});
    look_again();
  } else {
    wait->result = slot.error();
  }
  return wait;
}

void ModelSlots::await_load(Slot& slot, const std::shared_ptr<ModelWait>& wait, std::optional<KeepAlive> keep_alive) {
  if (slot.state == ModelState::kAsleep || slot.sleeps_then) {
    wait->result = asleep(slot.id());
    return;
  }
  if (keep_alive) slot.keep_alive = keep_alive;
  if (slot.state == ModelState::kLoaded && !slot.is_unwanted) {
    wait->result = hold(slot);
    return;
  }
  std::erase_if(slot.loads, [](const Slot::Waiting& waiting) { return waiting.wait.expired(); });
  if (slot.loads.size() >= options_.most_waiting) {
    Error error{ErrorCode::kModelNotLoaded, fmt::format("{} requests wait for the model '{}' already", slot.loads.size(), slot.id()),
                "model"};
    error.retry_after = slot.load_seconds;
    wait->result = std::move(error);
    return;
  }
  slot.loads.push_back({wait, Clock::now() + options_.load_timeout});
  sweep_waits();
  if (std::ranges::find(queue_, &slot) == queue_.end() && slot.state != ModelState::kLoading) queue_.push_back(&slot);
  if (!std::exchange(is_loading_, true)) return spawn(run_loads());
  // One that could not begin with the others may begin with this. A load that waits for room has nothing to look for.
  if (std::ranges::find(slots_, ModelState::kLoading, &Slot::state) == slots_.end()) changed();
}

// One after the other.
asio::awaitable<void> ModelSlots::run_loads() {
  while (!queue_.empty() && !is_draining_) {
    const auto next = std::ranges::find(queue_, ModelState::kUnloaded, &Slot::state);
    if (next == queue_.end()) {  // what is left of them goes first
      co_await await_change(Clock::time_point::max());
      continue;
    }
    Slot& slot = **next;
    queue_.erase(next);
    slot.state = ModelState::kLoading;
    slot.progress = {};
    const Clock::time_point began = Clock::now();
    const Result<void> loaded = co_await load(slot);
    slot.load_seconds = std::max(std::chrono::seconds(1), std::chrono::ceil<std::chrono::seconds>(Clock::now() - began));
    if (loaded) spdlog::info("model {}: loaded in {:.2f} s", slot.id(), std::chrono::duration<double>(Clock::now() - began).count());
    settle_load(slot, loaded);
  }
  is_loading_ = false;
}

asio::awaitable<Result<void>> ModelSlots::load(Slot& slot) {
  const Clock::time_point until = Clock::now() + options_.load_timeout;
  const ServedModelOptions options = slot.found.options;  // what is found meanwhile may replace them
  const Result<ModelNeeds> needs = co_await workshop_.look(options);
  if (!needs) co_return needs.error();
  const Result<PoolBytes> pool = co_await make_room(*needs, until);
  if (!pool) co_return pool.error();
  Workshop::OnProgress on_progress = [&slot](const ModelProgress& progress) {
    slot.progress = progress;
    for (const Slot::Waiting& waiting : slot.loads) {
      const std::shared_ptr<ModelWait> wait = waiting.wait.lock();
      if (wait == nullptr) continue;
      wait->progress = progress;
      wait->arrived.notify();
    }
  };
  Result<std::unique_ptr<ServedEngine>> engine = co_await workshop_.make(options, *pool, std::move(on_progress));
  if (!engine) co_return engine.error();
  slot.engine = std::move(*engine);
  asio::awaitable<Result<void>> preparing = prepare(slot, options.settings ? options.settings->adapters : std::vector<std::string>());
  const Result<void> ready = co_await std::move(preparing);
  if (ready && !is_draining_) co_return Result<void>();
  std::shared_ptr<void> remains = co_await slot.engine->end();
  slot.engine.reset();
  co_await workshop_.discard(std::move(remains));
  co_return ready ? leaving() : ready.error();
}

// A new engine has what the one before it had, and is warm, which it becomes by the weights that it was loaded with.
asio::awaitable<Result<void>> ModelSlots::prepare(Slot& slot, std::vector<std::string> own_adapters) {
  if (options_.warm_up && !is_draining_) {
    Result<void> warm = co_await slot.engine->warm_up(kShortWarmUpPrompt);
    if (!warm) co_return warm;
  }
  if (slot.weights) {
    asio::awaitable<Result<void>> restoring = slot.engine->restore_weights(slot.weights);
    Result<void> restored = co_await std::move(restoring);
    if (!restored) co_return restored;
  }
  if (slot.adapters) {
    asio::awaitable<void> restoring = slot.engine->restore_adapters(slot.adapters);
    co_await std::move(restoring);
  }
  asio::awaitable<Result<void>> adapting = slot.engine->use_adapters(std::move(own_adapters));
  co_return co_await std::move(adapting);
}

void ModelSlots::settle_load(Slot& slot, const Result<void>& loaded) {
  const auto waits = std::exchange(slot.loads, {});
  sweep_waits();  // their deadlines are nobody's any more
  if (loaded) {
    slot.state = ModelState::kLoaded;
    slot.failure.clear();
    slot.reload.reset();
    slot.reload_failures = 0;
    slot.weights.reset();
    watch(slot);
    slot.last_used = Clock::now();
    on_changed_();
    const ModelHold held = hold(slot);  // the last one of these decides how it goes on
    for (const Slot::Waiting& waiting : waits) answer(waiting.wait, held);
    return;
  }
  slot.state = std::exchange(slot.sleeps_then, false) ? ModelState::kAsleep : ModelState::kUnloaded;
  slot.is_unwanted = false;
  Error error = loaded.error();
  if (error.code != ErrorCode::kDraining) {
    slot.failure = error.message;
    spdlog::error("model {}: {}", slot.id(), error.message);
    error.message = fmt::format("the model '{}' cannot be loaded: {}", slot.id(), error.message);
    error.param = "model";
  }
  for (const Slot::Waiting& waiting : waits) answer(waiting.wait, error);
  for (const auto& end : std::exchange(slot.ends, {})) answer(end, ModelHold());
  if (slot.reload != nullptr) reload_later(slot);
  changed();
}

// Requests whose time is over go on without the model, which is loaded nevertheless.
void ModelSlots::sweep_waits() {
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  for (const auto& slot : slots_) {
    for (const Slot::Waiting& waiting : slot->loads) {
      if (waiting.until > now) {
        next = std::min(next, waiting.until);
        continue;
      }
      Error error{ErrorCode::kModelNotLoaded, fmt::format("the model '{}' is still being loaded", slot->id()), "model"};
      error.retry_after = slot->load_seconds;
      answer(waiting.wait, error);
    }
    std::erase_if(slot->loads, [now](const Slot::Waiting& waiting) { return waiting.until <= now || waiting.wait.expired(); });
  }
  if (next == Clock::time_point::max()) return void(waits_timer_.cancel());
  if (waits_timer_.expiry() > now && waits_timer_.expiry() <= next) return;
  waits_timer_.expires_at(next);
  waits_timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) sweep_waits();
  });
}

// Room

ModelSlots::Slot* ModelSlots::idlest() const {
  Slot* idlest = nullptr;
  for (const auto& slot : slots_)
    if (is_idle(*slot) && (idlest == nullptr || slot->last_used < idlest->last_used)) idlest = slot.get();
  return idlest;
}

void ModelSlots::changed() { room_timer_.cancel(); }

asio::awaitable<void> ModelSlots::await_change(Clock::time_point until) {
  room_timer_.expires_at(until);
  co_await room_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

std::uint64_t ModelSlots::untouched() const {
  std::uint64_t bytes = 0;
  for (const auto& slot : slots_)
    if (slot->engine != nullptr && !slot->leaving) bytes += slot->engine->untouched();
  return bytes;
}

std::vector<EngineMemory> ModelSlots::memory_of_loaded() const {
  std::vector<EngineMemory> memory;
  for (const auto& slot : slots_) {
    if (slot->leaving) {
      memory.push_back(*slot->leaving);
    } else if (slot->engine != nullptr) {
      memory.push_back(slot->engine->memory());
    }
  }
  return memory;
}

asio::awaitable<Result<PoolBytes>> ModelSlots::make_room(const ModelNeeds& needs, Clock::time_point until) {
  for (bool has_shrunk = false;;) {
    if (is_draining_) co_return leaving();
    std::string lack;
    const bool is_full = options_.most_loaded > 0 && loaded() >= options_.most_loaded;
    if (is_full) {
      lack = fmt::format("{} models are loaded, which is the most (--max-models), and all are in use", loaded());
    } else if (needs.pool_elsewhere) {
      co_return PoolBytes{*needs.pool_elsewhere};
    } else {
      const std::vector<EngineMemory> memory = memory_of_loaded();
      const Result<std::uint64_t> left = co_await workshop_.memory_left(untouched());
      if (!left) co_return left.error();
      const MemoryShare share = share_memory(options_.memory, memory, needs, *left);
      if (share.lacking > 0 && !std::exchange(has_shrunk, true) && shrink_pools(share.lacking)) {
        co_await await_change(std::min(until, Clock::now() + kShrinkPatience));
        continue;
      }
      if (share.pool) co_return *share.pool;
      lack = fmt::format("there is no room for it: {}", share.lack);
    }
    if (Slot* slot = idlest(); slot != nullptr) {
      spdlog::info("model {}: unloaded to make room", slot->id());
      co_await unload_now(*slot);
      has_shrunk = false;
      continue;
    }
    if (Clock::now() >= until || loaded() == 0) {
      Error error{ErrorCode::kModelNotLoaded, lack, "model"};
      error.retry_after = std::chrono::seconds(1);
      co_return error;
    }
    co_await await_change(until);
    has_shrunk = false;
  }
}

// Each pool gives up an equal part of what is lacking, or more where others cannot. False: none can.
bool ModelSlots::shrink_pools(std::uint64_t bytes) {
  bool any = false;
  std::vector<ServedEngine*> engines = this->engines();
  std::ranges::sort(engines, std::greater<>(), [](const ServedEngine* engine) { return engine->memory().kv; });
  std::uint64_t pools = 0;
  for (const ServedEngine* engine : engines) pools += engine->memory().kv;
  const std::uint64_t fair = (pools - std::min(pools, bytes)) / std::max<std::size_t>(1, engines.size());
  for (ServedEngine* engine : engines)
    if (engine->memory().kv > fair) any = engine->resize_pool(fair, [this] { changed(); }) || any;
  return any;
}

// What has come free is shared by those that are left.
asio::awaitable<void> ModelSlots::grow_pools() {
  if (is_loading_ || is_draining_) co_return;
  const std::vector<EngineMemory> memory = memory_of_loaded();
  if (memory.empty()) co_return;
  const Result<std::uint64_t> left = co_await workshop_.memory_left(untouched());
  if (!left || is_loading_ || is_draining_) co_return;
  const std::uint64_t part = free_for_pools(options_.memory, memory, *left) / memory.size();
  for (ServedEngine* engine : engines()) engine->resize_pool(engine->memory().kv + part, {});
}

// Unloading

std::shared_ptr<ModelWait> ModelSlots::unload(std::string name) {
  const Result<Slot*> found = slot_of(name);
  if (!found) return answered(found.error());
  Slot& slot = **found;
  give_up_queued(slot);
  give_up_reload(slot);
  if (slot.state == ModelState::kUnloaded || slot.state == ModelState::kAsleep) return answered(ModelHold());
  auto wait = std::make_shared<ModelWait>();
  slot.ends.push_back(wait);
  slot.is_unwanted = true;
  if (slot.state == ModelState::kLoading) {
    spdlog::info("model {}: not wanted any more while it is loaded", slot.id());
  } else if (is_idle(slot)) {
    begin_unloading(slot);
  }
  return wait;
}

// Who waits for a model that is not being loaded yet.
void ModelSlots::give_up_queued(Slot& slot) {
  if (std::erase(queue_, &slot) == 0) return;
  for (const Slot::Waiting& waiting : std::exchange(slot.loads, {}))
    answer(waiting.wait,
           Error{ErrorCode::kModelNotLoaded, fmt::format("the model '{}' was unloaded before it was loaded", slot.id()), "model"});
}

void ModelSlots::begin_unloading(Slot& slot) {
  if (is_idle(slot)) spawn(unload_now(slot));
}

asio::awaitable<void> ModelSlots::unload_now(Slot& slot) {
  slot.state = ModelState::kUnloading;
  slot.expiry.cancel();
  slot.expires.reset();
  slot.leaving = slot.engine->memory();
  slot.adapters = slot.engine->keep_adapters();
  if (slot.reload != nullptr) slot.weights = slot.engine->keep_weights();
  on_changed_();
  std::shared_ptr<void> remains = co_await slot.engine->end();
  slot.engine.reset();
  co_await workshop_.discard(std::move(remains));
  slot.leaving.reset();
  slot.is_unwanted = false;
  slot.keep_alive.reset();
  slot.state = std::exchange(slot.sleeps_then, false) ? ModelState::kAsleep : ModelState::kUnloaded;
  spdlog::info("model {}: unloaded", slot.id());
  for (const auto& end : std::exchange(slot.ends, {})) answer(end, ModelHold());
  if (slot.reload != nullptr && !is_draining_) await_load(slot, slot.reload, {});
  if (slot.is_gone && slot.loads.empty()) std::erase_if(slots_, [&slot](const auto& one) { return one.get() == &slot; });
  spawn(grow_pools());
  changed();
}

}  // namespace braid::app
