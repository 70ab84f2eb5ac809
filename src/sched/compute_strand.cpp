#include "sched/compute_strand.h"

#include "sched/strand_lane.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <utility>

namespace braid::sched {

// Shared with completions that are still in the loop's queue when the strand is gone.
struct ComputeStrand::Mailbox {
  ComputeStrand* strand = nullptr;  // null once it is gone
};

ComputeStrand::ComputeStrand(boost::asio::io_context& loop, std::function<void()> on_busy)
    : loop_(loop), on_busy_(std::move(on_busy)), mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->strand = this;
  thread_ = std::thread([this] { run(); });
}

ComputeStrand::~ComputeStrand() {
  stop_.store(true, std::memory_order_relaxed);
  handed_.fetch_add(1, std::memory_order_release);
  handed_.notify_one();
  thread_.join();
  mailbox_->strand = nullptr;
}

void ComputeStrand::join(StrandLane& lane) {
  lane.member_ = arbiter_.join();
  lanes_.resize(std::max(lanes_.size(), lane.member_ + 1));
  lanes_[lane.member_] = &lane;
}

// Waits for its step that runs; one whose turn has not come is never run.
void ComputeStrand::leave(const StrandLane& lane) {
  for (std::uint64_t number = returned_; number != posted_; ++number) {
    Posted& step = posted(number);
    if (step.lane != &lane) continue;
    step.lane = nullptr;
    if (step.step.exchange(nullptr) != nullptr) continue;
    const auto end = static_cast<std::uint32_t>(number + 1);
    for (std::uint32_t done = done_; static_cast<std::int32_t>(end - done) > 0; done = done_) done_.wait(done);
  }
  lanes_[lane.member_] = nullptr;
  arbiter_.leave(lane.member_);
}

bool ComputeStrand::grant(const StrandLane& lane) {
  arbiter_.want(lane.member_);
  if (!has_room()) return false;
  if (arbiter_.next() == lane.member_) return true;
  offer();
  return false;
}

void ComputeStrand::pass(const StrandLane& lane) {
  arbiter_.withdraw(lane.member_);
  offer();
}

// Tells who is to have the next turn, if there is room for one.
void ComputeStrand::offer() const {
  if (!has_room()) return;
  if (const std::optional<Arbiter::Member> next = arbiter_.next()) lanes_[*next]->on_turn_();
}

void ComputeStrand::resume() {
  is_paused_ = false;
  offer();
}

void ComputeStrand::post(StrandLane& lane, Step& step) {
  assert(has_room());
  const bool was_idle = idle();
  if (was_idle) work_.emplace(loop_.get_executor());
  arbiter_.begin(lane.member_);
  Posted& next = posted(posted_);
  next.executor = &lane.executor_;
  next.lane = &lane;
  next.step.store(&step, std::memory_order_relaxed);
  ++posted_;
  handed_.store(static_cast<std::uint32_t>(posted_), std::memory_order_seq_cst);  // notify_one() must not look for waiters before it
  handed_.notify_one();
  if (was_idle && on_busy_) on_busy_();
}

double ComputeStrand::running_seconds() const {
  const std::int64_t began = step_began_.load(std::memory_order_relaxed);
  if (began == 0) return 0.0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::max(0.0, std::chrono::duration<double>(now - std::chrono::nanoseconds(began)).count());
}

bool ComputeStrand::runs(const StrandLane& lane) const { return !idle() && steps_[returned_ % kMaxPosted].lane == &lane; }

void ComputeStrand::on_returned() {
  StrandLane* const lane = posted(returned_).lane;
  ++returned_;
  if (idle()) work_.reset();
  if (lane == nullptr) return;
  arbiter_.end(lane->member_, lane->come_back());
  lane->on_return_();
}

void ComputeStrand::run() {
  for (std::uint32_t taken = 0;; ++taken) {
    handed_.wait(taken, std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    Posted& next = posted(taken);
    if (Step* const step = next.step.exchange(nullptr)) execute(*step, *next.executor);
    done_.fetch_add(1);
    done_.notify_one();
    boost::asio::post(loop_, [mailbox = mailbox_] {
      if (mailbox->strand != nullptr) mailbox->strand->on_returned();
      if (mailbox->strand != nullptr) mailbox->strand->offer();  // it may have been destroyed
    });
  }
}

void ComputeStrand::execute(Step& step, step::StepExecutor& executor) {
  const auto begin = std::chrono::steady_clock::now();
  step.result.clear();
  step.result.id = step.plan.id;
  step_began_.store(std::chrono::nanoseconds(begin.time_since_epoch()).count(), std::memory_order_relaxed);
  try {
    executor.execute(step.plan, step.result);
  } catch (...) {
    step.result.clear();
    step.result.failure = std::current_exception();
  }
  step_began_.store(0, std::memory_order_relaxed);
  if (step.result.seconds == 0.0) step.result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace braid::sched
