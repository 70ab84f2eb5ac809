// Many waiting coroutines that are to go on.
#pragma once

#include "braid/signal.h"

#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <memory>

namespace braid::sched {

// Loop only. Resumes waiters in the order in which they came, a few at each turn of the loop, so that neither a new connection nor a step
// that comes back waits for thousands of them. What the next ones need is fetched while one runs. Signals may be destroyed at any time;
// handlers in the loop's queue share the list. Adding allocates at most once until all have gone on.
class WakeList : public std::enable_shared_from_this<WakeList> {
 public:
  explicit WakeList(boost::asio::io_context& loop) : loop_(loop) {}

  // Without a waiter it does nothing.
  void add(Signal& signal);

 private:
  void post();
  void resume_some();
  void fetch_ahead() const;

  boost::asio::io_context& loop_;
  boost::intrusive::list<Signal, boost::intrusive::constant_time_size<false>> signals_;
  bool is_posted_ = false;
};

}  // namespace braid::sched
