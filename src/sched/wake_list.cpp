#include "sched/wake_list.h"

#include <boost/asio/post.hpp>

namespace braid::sched {

namespace {

constexpr int kAtOnce = 32;

// How many wake-ups ahead. Between two of them an event is composed, which takes longer than memory does to answer.
constexpr int kWaiterAhead = 1;
constexpr int kHintAhead = 3;

}  // namespace

void WakeList::add(Signal& signal) {
  if (!signal.waits() || signal.is_linked()) return;
  signals_.push_back(signal);
  if (!is_posted_) post();
}

void WakeList::post() {
  boost::asio::post(loop_, [self = shared_from_this()] { self->resume_some(); });
  is_posted_ = true;
}

void WakeList::resume_some() {
  is_posted_ = false;
  for (int i = 0; i < kAtOnce && !signals_.empty(); ++i) {
    Signal& signal = signals_.front();
    fetch_ahead();
    signal.notify_now();
  }
  if (!signals_.empty() && !is_posted_) post();
}

void WakeList::fetch_ahead() const {
  int ahead = 0;
  for (const Signal& signal : signals_) {
    if (ahead == kWaiterAhead) signal.prefetch_waiter();
    if (ahead == kHintAhead) return signal.prefetch_hint();
    ++ahead;
  }
}

}  // namespace braid::sched
