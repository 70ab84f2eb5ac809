// The models of a server that come and go: each has a slot, in which it is loaded, used, and unloaded again.
#pragma once

#include "app/memory.h"
#include "app/serving/catalogue.h"
#include "app/serving/memory_share.h"
#include "app/serving/model_slot.h"
#include "app/serving/served_engine.h"
#include "app/serving/workshop.h"
#include "braid/model_host.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

struct SlotOptions {
  std::size_t most_loaded = 0;                      // --max-models; 0: as many as fit
  std::chrono::milliseconds load_timeout{300'000};  // for which a request waits, and a load for room
  KeepAlive keep_alive{300'000};                    // of what requests have loaded
  std::size_t most_waiting = 16384;                 // requests for a model that is being loaded
  // Until a model that broke, and could not be loaded again, is tried once more: twice as long each time, up to a minute.
  std::chrono::milliseconds reload_delay{1'000};
  MemoryRules memory = {};
  bool any_name = false;  // what no name stands for is the first one
  bool warm_up = true;
};

// Loads one model at a time, in the order in which they were asked for. When there is no room for it, the others' pools shrink, then the one
// that nobody has used for the longest time goes, then it waits until somebody else's requests have ended. Loop only.
class ModelSlots final : public ModelHost {
 public:
  // `find` is called on threads of its own. `on_changed` is called when models are loaded or unloaded. The workshop and the loop outlive it.
  ModelSlots(boost::asio::io_context& loop, Workshop& workshop, SlotOptions options, FindModels find, std::vector<FoundModel> found,
             std::function<void()> on_changed);
  ~ModelSlots() override;

  // At the start: one that is known already, and stays until its memory is needed.
  void put(std::unique_ptr<ServedEngine> engine);

  std::vector<KnownModel> known() const override;
  bool empty() const override { return slots_.empty() && !find_; }
  Result<std::string> find(std::string_view name) const override;
  ModelHold take(std::string_view name, std::optional<KeepAlive> keep_alive = {}) override;
  std::shared_ptr<ModelWait> ask(std::string name, std::optional<KeepAlive> keep_alive = {}) override;
  std::shared_ptr<ModelWait> unload(std::string name) override;
  std::shared_ptr<ModelWait> sleep(std::string name, bool now) override;
  std::shared_ptr<ModelWait> wake(std::string name) override;

  // What can be asked for has changed.
  void look_again();

  // Why one that was loaded is being loaded again; empty: none is.
  std::string broken() const;

  // Those that are loaded, and not being unloaded.
  std::vector<ServedEngine*> engines() const;

  // Nothing is loaded any more, and who waits for that is told so; then as ServedEngine.
  boost::asio::awaitable<bool> drain(std::chrono::steady_clock::time_point until);

 private:
  using Clock = std::chrono::steady_clock;
  using Slot = ModelSlot;
  struct Missing {
    std::string name;
    std::optional<KeepAlive> keep_alive;
    std::weak_ptr<ModelWait> wait;
  };

  Result<Slot*> slot_of(std::string_view name) const;
  Result<Slot*> usual_slot() const;
  Slot* slot_of_id(std::string_view id) const;
  Slot* slot_of_adapter(std::string_view name) const;
  bool is_idle(const Slot& slot) const;
  ModelHold hold(Slot& slot);
  void on_released(Slot& slot);
  void arm_expiry(Slot& slot);
  void await_load(Slot& slot, const std::shared_ptr<ModelWait>& wait, std::optional<KeepAlive> keep_alive);
  void begin_unloading(Slot& slot);
  boost::asio::awaitable<void> unload_now(Slot& slot);
  void give_up_queued(Slot& slot);

  boost::asio::awaitable<void> run_loads();
  boost::asio::awaitable<Result<void>> load(Slot& slot);
  boost::asio::awaitable<Result<void>> prepare(Slot& slot, std::vector<std::string> own_adapters);
  boost::asio::awaitable<Result<PoolBytes>> make_room(const ModelNeeds& needs, Clock::time_point until);
  boost::asio::awaitable<void> await_change(Clock::time_point until);
  bool shrink_pools(std::uint64_t bytes);
  boost::asio::awaitable<void> grow_pools();
  std::vector<EngineMemory> memory_of_loaded() const;
  std::uint64_t untouched() const;
  Slot* idlest() const;
  std::size_t loaded() const;
  void settle_load(Slot& slot, const Result<void>& loaded);
  void watch(Slot& slot);
  void replace(Slot& slot, const std::string& why);
  void reload_later(Slot& slot);
  void give_up_reload(Slot& slot);

  std::vector<std::string> targets(std::string_view name, bool asleep, Error& error) const;
  boost::asio::awaitable<void> sleep_all(std::vector<std::string> ids, bool now, std::shared_ptr<ModelWait> wait);
  boost::asio::awaitable<void> wake_all(std::vector<std::string> ids, std::shared_ptr<ModelWait> wait);
  boost::asio::awaitable<void> rescan();
  void put_found(std::vector<FoundModel> found);
  void sweep_waits();
  void changed();
  void spawn(boost::asio::awaitable<void> coroutine);

  boost::asio::io_context& loop_;
  Workshop& workshop_;
  const SlotOptions options_;
  const FindModels find_;
  const std::function<void()> on_changed_;
  std::vector<std::unique_ptr<Slot>> slots_;  // in the order of known()
  std::deque<Slot*> queue_;                   // to be loaded
  bool is_loading_ = false;
  std::vector<Missing> missing_;  // waits for names that were not known; looked up again after the scan
  bool is_scanning_ = false;
  bool wants_scan_ = false;
  std::optional<boost::asio::thread_pool> scanner_;  // one thread
  bool is_draining_ = false;
  boost::asio::steady_timer room_timer_;                          // of a load that waits for room: cancelled when something has changed
  boost::asio::steady_timer waits_timer_;                         // the first deadline of a wait
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // what holds ask that end late
};

}  // namespace braid::app
