// Wakes one waiting coroutine. The smallest thing that lets the loop's parts wait for each other without polling.
#pragma once

#include "braid/prefetch.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <cassert>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace braid {

// What a waiting coroutine reads when it goes on. Who wakes many of them has the next ones' brought into the cache meanwhile.
class WakeHint {
 public:
  // Called some wake-ups ahead; the object's own first kBytes are on their way since some more.
  virtual void prefetch() const noexcept = 0;
  static constexpr std::size_t kBytes = 512;

 protected:
  ~WakeHint() = default;
};

// Loop only, one waiter at a time. Nothing is remembered: a notification without a waiter is lost, so look at the state first and
// wait only when there is nothing to do. A wait also ends when its coroutine is cancelled. Neither waiting nor storing the waiter
// allocates: there is no frame for the wait, and the suspended coroutine is kept in place. The hook is WakeList's.
class Signal : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    if (waits()) kind_->drop(waiter_);  // unwinds the coroutine
  }

  // To be awaited at once. `hint` outlives the wait.
  auto wait(const WakeHint* hint = nullptr) {
    return boost::asio::async_initiate<const boost::asio::deferred_t, void()>(Store{this, hint}, boost::asio::deferred);
  }

  bool waits() const { return kind_ != nullptr; }

  // Resumes the waiter from the loop's queue; the caller goes on undisturbed.
  void notify() {
    if (waits()) take().post(waiter_);
  }

  // Resumes the waiter inside this call. For the end of a handler only: the waiter may destroy what it likes.
  void notify_now() {
    if (waits()) take().resume(waiter_);
  }

  // The two stages of fetching what a waiter needs.
  void prefetch_hint() const {
    if (hint_ != nullptr) prefetch_lines(hint_, WakeHint::kBytes);
  }
  void prefetch_waiter() const {
    if (hint_ != nullptr) hint_->prefetch();
  }

 private:
  // What can be done with a handler of one type; each ends its life at `place`.
  struct Kind {
    void (*post)(void* place);
    void (*resume)(void* place);
    void (*drop)(void* place);
  };

  template <class Handler>
  static Handler taken_from(void* place) {
    Handler& stored = *std::launder(static_cast<Handler*>(place));
    Handler handler = std::move(stored);
    stored.~Handler();
    return handler;
  }

  template <class Handler>
  static constexpr Kind kKind = {[](void* place) { boost::asio::post(taken_from<Handler>(place)); },
                                 [](void* place) { taken_from<Handler>(place)(); }, [](void* place) { taken_from<Handler>(place); }};

  struct Store {
    Signal* signal;
    const WakeHint* hint;
    template <class Handler>
    void operator()(Handler&& handler) const {
      signal->store(std::forward<Handler>(handler), hint);
    }
  };

  template <class Handler>
  void store(Handler handler, const WakeHint* hint) {
    static_assert(sizeof(Handler) == sizeof waiter_ && alignof(Handler) <= alignof(void*) && std::is_nothrow_move_constructible_v<Handler>);
    assert(!waits() && "a signal has one waiter");
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.assign([this](boost::asio::cancellation_type) { notify(); });
    new (waiter_) Handler(std::move(handler));
    hint_ = hint;
    kind_ = &kKind<Handler>;
  }

  // Before the waiter goes on, which may wait again at once.
  const Kind& take() {
    if (is_linked()) unlink();
    return *std::exchange(kind_, nullptr);
  }

  alignas(void*) std::byte waiter_[sizeof(void*)];
  const Kind* kind_ = nullptr;  // null: nobody waits
  const WakeHint* hint_ = nullptr;
};

}  // namespace braid
