// Models that break while they are served, and are loaded again.
#include "app/serving/model_slots.h"
#include "app/serving/model_waits.h"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace braid::app {
namespace {

constexpr std::chrono::milliseconds kMostReloadDelay{60'000};

}  // namespace

void ModelSlots::watch(Slot& slot) {
  slot.engine->on_broken([this, &slot, alive = std::weak_ptr(alive_)](const std::string& why) {
    if (!alive.expired() && slot.state == ModelState::kLoaded) replace(slot, why);
  });
}

// Answers end with the reason; who asks from now on waits for the load. One that is to be unloaded anyway only ends them.
void ModelSlots::replace(Slot& slot, const std::string& why) {
  if (slot.reload != nullptr) return;  // it is known
  const bool is_wanted = !slot.is_unwanted && !is_draining_;
  const std::string what = fmt::format("the model '{}' {}: {}", slot.id(), is_wanted ? "is loaded again" : "is lost", why);
  spdlog::error("{}", what);
  slot.failure = why;
  if (is_wanted) slot.reload = std::make_shared<ModelWait>();
  slot.is_unwanted = true;
  slot.engine->abort_remaining({ErrorCode::kModelNotLoaded, what, {}});
  if (!is_draining_) begin_unloading(slot);
  on_changed_();
}

std::string ModelSlots::broken() const {
  const auto slot = std::ranges::find_if(slots_, [](const auto& one) { return one->reload != nullptr; });
  return slot == slots_.end() ? "" : fmt::format("the model '{}' is loaded again: {}", (*slot)->id(), (*slot)->failure);
}

// Nobody else may ask for it: who looks at /readyz sends it no requests.
void ModelSlots::reload_later(Slot& slot) {
  if (is_draining_) return;
  const auto doubled = options_.reload_delay * (1 << std::min(slot.reload_failures++, 16));
  const auto delay = std::min<std::chrono::milliseconds>(doubled, kMostReloadDelay);
  spdlog::info("model {}: it is tried again in {:.1f} s", slot.id(), std::chrono::duration<double>(delay).count());
  slot.retry.expires_after(delay);
  slot.retry.async_wait([this, &slot, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired() || slot.reload == nullptr || is_draining_) return;
    slot.reload = std::make_shared<ModelWait>();  // the one of before has its answer
    await_load(slot, slot.reload, {});
  });
}

void ModelSlots::give_up_reload(Slot& slot) {
  if (slot.reload == nullptr) return;
  slot.reload.reset();
  slot.reload_failures = 0;
  slot.weights.reset();
  slot.retry.cancel();
  on_changed_();
}

}  // namespace braid::app
