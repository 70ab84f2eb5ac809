// Sleep, the end of the server, and what is found in the folders meanwhile.
#include "app/serving/model_slots.h"
#include "app/serving/model_waits.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

asio::awaitable<std::vector<FoundModel>> find_elsewhere(FindModels find) { co_return find(); }

}  // namespace

// Those that are loaded, or sleep; or the one of that name, whatever it does.
std::vector<std::string> ModelSlots::targets(std::string_view name, bool asleep, Error& error) const {
  if (!name.empty()) {
    const Result<Slot*> slot = slot_of(name);
    if (slot) return {(*slot)->id()};
    error = slot.error();
    return {};
  }
  std::vector<std::string> ids;
  for (const auto& slot : slots_) {
    const bool is_there = slot->state == ModelState::kLoaded || slot->state == ModelState::kLoading;
    if (asleep ? slot->state == ModelState::kAsleep : is_there) ids.push_back(slot->id());
  }
  return ids;
}

std::shared_ptr<ModelWait> ModelSlots::sleep(std::string name, bool now) {
  Error error;
  std::vector<std::string> ids = targets(name, false, error);
  if (ids.empty()) return answered(name.empty() ? Result<ModelHold>(ModelHold()) : Result<ModelHold>(error));
  auto wait = std::make_shared<ModelWait>();
  spawn(sleep_all(std::move(ids), now, wait));
  return wait;
}

asio::awaitable<void> ModelSlots::sleep_all(std::vector<std::string> ids, bool now, std::shared_ptr<ModelWait> wait) {
  std::vector<std::shared_ptr<ModelWait>> ends;
  for (const std::string& id : ids) {
    Slot& slot = *slot_of_id(id);
    if (slot.state == ModelState::kUnloaded || slot.state == ModelState::kAsleep) {
      slot.state = ModelState::kAsleep;
      give_up_queued(slot);
      give_up_reload(slot);
      continue;
    }
    slot.sleeps_then = true;
    ends.push_back(unload(id));
    if (now && slot.state == ModelState::kLoaded)
      slot.engine->abort_remaining({ErrorCode::kCancelled, fmt::format("the model '{}' was put to sleep", id), {}});
  }
  for (const auto& end : ends)
    while (!end->result) co_await end->arrived.wait();
  answer(wait, ModelHold());
}

std::shared_ptr<ModelWait> ModelSlots::wake(std::string name) {
  Error error;
  std::vector<std::string> ids = targets(name, true, error);
  if (ids.empty()) return answered(name.empty() ? Result<ModelHold>(ModelHold()) : Result<ModelHold>(error));
  auto wait = std::make_shared<ModelWait>();
  spawn(wake_all(std::move(ids), wait));
  return wait;
}

asio::awaitable<void> ModelSlots::wake_all(std::vector<std::string> ids, std::shared_ptr<ModelWait> wait) {
  std::vector<std::shared_ptr<ModelWait>> loads;
  for (const std::string& id : ids) {
    Slot& slot = *slot_of_id(id);
    slot.sleeps_then = false;
    if (slot.state == ModelState::kAsleep) slot.state = ModelState::kUnloaded;
    loads.push_back(ask(id));
  }
  Result<ModelHold> last = ModelHold();
  for (const auto& load : loads) {
    while (!load->result) co_await load->arrived.wait();
    if (!*load->result) last = load->result->error();
  }
  answer(wait, last);
}

asio::awaitable<bool> ModelSlots::drain(Clock::time_point until) {
  is_draining_ = true;
  workshop_.cancel();
  changed();
  waits_timer_.cancel();
  for (const auto& slot : slots_) {
    slot->expiry.cancel();
    slot->retry.cancel();
    for (const Slot::Waiting& waiting : std::exchange(slot->loads, {})) answer(waiting.wait, leaving());
  }
  for (const Missing& missing : std::exchange(missing_, {})) answer(missing.wait, leaving());
  const std::vector<ServedEngine*> engines = this->engines();
  for (ServedEngine* engine : engines) engine->begin_drain();
  bool all = true;
  for (ServedEngine* engine : engines) {
    const bool ended = co_await engine->drained(until);
    all = all && ended;
  }
  co_return all;
}

void ModelSlots::look_again() {
  if (!find_ || is_draining_) return;
  wants_scan_ = true;
  if (!std::exchange(is_scanning_, true)) spawn(rescan());
}

// One scan answers all who ask for unknown names while it runs, but for those who came too late for it.
asio::awaitable<void> ModelSlots::rescan() {
  if (!scanner_) scanner_.emplace(1);
  while (std::exchange(wants_scan_, false) || !missing_.empty()) {
    const std::vector<Missing> asked = std::exchange(missing_, {});
    auto finding = asio::co_spawn(*scanner_, find_elsewhere(find_), asio::use_awaitable);
    std::vector<FoundModel> found = co_await std::move(finding);
    put_found(std::move(found));
    for (const Missing& missing : asked) {
      const std::shared_ptr<ModelWait> wait = missing.wait.lock();
      if (wait == nullptr || wait->result) continue;
      if (const Result<Slot*> slot = slot_of(missing.name)) {
        await_load(**slot, wait, missing.keep_alive);
      } else {
        wait->result = slot.error();
      }
      if (wait->result) wait->arrived.notify();
    }
  }
  is_scanning_ = false;
}

// What is loaded or in use stays until it is unloaded, also when its files are gone, and so does what somebody waits for.
void ModelSlots::put_found(std::vector<FoundModel> found) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (FoundModel& model : found) {
    const auto known =
        std::ranges::find_if(slots_, [&model](const auto& slot) { return slot != nullptr && slot->id() == model.options.id; });
    if (known == slots_.end()) {
      slots.push_back(std::make_unique<Slot>(loop_, std::move(model)));
      continue;
    }
    slots.push_back(std::move(*known));
    slots.back()->found = std::move(model);
    slots.back()->is_gone = false;
  }
  for (auto& slot : slots_) {
    if (slot == nullptr) continue;
    if (slot->state == ModelState::kUnloaded && slot->loads.empty()) {
      std::erase(queue_, slot.get());
      continue;
    }
    slot->is_gone = true;
    slots.push_back(std::move(slot));
  }
  slots_ = std::move(slots);
}

}  // namespace braid::app
