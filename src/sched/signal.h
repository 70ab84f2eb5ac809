// Wakes one waiting coroutine. The smallest thing that lets the loop's parts wait for each other without polling.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cassert>
#include <optional>
#include <utility>

namespace braid::sched {

// Loop only, one waiter at a time. Nothing is remembered: a notification without a waiter is lost, so look at the state first and
// wait only when there is nothing to do. wait() also ends when its coroutine is cancelled. Does not allocate: the suspended coroutine
// is kept in place, not type-erased.
class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  boost::asio::awaitable<void> wait() {
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(Store{this}, boost::asio::use_awaitable);
  }

  // Resumes the waiter from the loop's queue; the caller goes on undisturbed.
  void notify() {
    if (!waiter_) return;
    Waiter waiter = take();
    boost::asio::post(std::move(waiter));
  }

  // Resumes the waiter inside this call. For the end of a handler only: the waiter may destroy what it likes.
  void notify_now() {
    if (!waiter_) return;
    Waiter waiter = take();
    boost::asio::dispatch(std::move(waiter));
  }

 private:
  using Waiter = boost::asio::async_result<boost::asio::use_awaitable_t<>, void()>::handler_type;

  struct Store {
    Signal* signal;
    void operator()(Waiter waiter) const { signal->store(std::move(waiter)); }
  };

  void store(Waiter waiter) {
    assert(!waiter_ && "a signal has one waiter");
    auto slot = boost::asio::get_associated_cancellation_slot(waiter);
    if (slot.is_connected()) slot.assign([this](boost::asio::cancellation_type) { notify(); });
    waiter_.emplace(std::move(waiter));
  }

  Waiter take() {
    Waiter waiter = std::move(*waiter_);
    waiter_.reset();
    return waiter;
  }

  std::optional<Waiter> waiter_;
};

}  // namespace braid::sched
