#include "sched/compute_strand.h"

#include "sched/strand_lane.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <utility>

namespace braid::sched {

namespace {
constexpr double kLeastSeconds = 1e-9;  // that a step says it took
}

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
  calls_.fetch_add(1, std::memory_order_release);
  calls_.notify_one();
  thread_.join();
  mailbox_->strand = nullptr;
}

void ComputeStrand::join(StrandLane& lane) {
  lane.member_ = arbiter_.join(lane.kind_ == StrandLane::Steps::kBetweenLayers);
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
  if (is_between_out() && between_.lane == &lane) leave_between();
  lanes_[lane.member_] = nullptr;
  arbiter_.leave(lane.member_);
}

void ComputeStrand::leave_between() {
  between_.lane = nullptr;
  if (between_.step.exchange(nullptr) != nullptr) {
    between_done_.fetch_add(1);
    return on_between_returned();
  }
  for (std::uint32_t done = between_done_; done != between_posted_; done = between_done_) between_done_.wait(done);
}

bool ComputeStrand::grant(StrandLane& lane) {
  arbiter_.want(lane.member_);
  lane.goes_between_ = has_room_between() && arbiter_.may_go_between(lane.member_);
  if (lane.goes_between_) return true;
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
  if (has_room_between())
    if (const std::optional<Arbiter::Member> next = arbiter_.next_between()) lanes_[*next]->on_turn_();
  if (!has_room()) return;
  if (const std::optional<Arbiter::Member> next = arbiter_.next()) lanes_[*next]->on_turn_();
}

void ComputeStrand::resume() {
  is_paused_ = false;
  offer();
}

void ComputeStrand::post(StrandLane& lane, Step& step) {
  const bool was_idle = idle();
  if (was_idle) work_.emplace(loop_.get_executor());
  arbiter_.begin(lane.member_);
  if (lane.goes_between_) {
    assert(has_room_between());
    ++between_posted_;
    hand(between_, lane, step);
  } else {
    assert(has_room());
    hand(posted(posted_++), lane, step);
    handed_.store(static_cast<std::uint32_t>(posted_));
  }
  calls_.fetch_add(1);  // notify_one() must not look for waiters before it
  calls_.notify_one();
  if (was_idle && on_busy_) on_busy_();
}

void ComputeStrand::hand(Posted& to, StrandLane& lane, Step& step) {
  to.executor = &lane.executor_;
  to.lane = &lane;
  to.step.store(&step);
}

double ComputeStrand::running_seconds() const {
  const std::int64_t began = step_began_.load(std::memory_order_relaxed);
  if (began == 0) return 0.0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::max(0.0, std::chrono::duration<double>(now - std::chrono::nanoseconds(began)).count());
}

bool ComputeStrand::runs(const StrandLane& lane) const { return posted_ != returned_ && steps_[returned_ % kMaxPosted].lane == &lane; }

void ComputeStrand::on_returned() {
  StrandLane* const lane = posted(returned_).lane;
  ++returned_;
  come_back(lane);
}

void ComputeStrand::on_between_returned() {
  ++between_returned_;
  come_back(std::exchange(between_.lane, nullptr));
}

// Of a lane that is still there.
void ComputeStrand::come_back(StrandLane* lane) {
  if (idle()) work_.reset();
  if (lane == nullptr) return;
  arbiter_.end(lane->member_, lane->come_back());
  lane->on_return_();
}

void ComputeStrand::run() {
  for (std::uint32_t taken = 0;;) {
    const std::uint32_t calls = calls_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    run_between();
    if (taken == handed_.load(std::memory_order_acquire)) {
      calls_.wait(calls, std::memory_order_acquire);
      continue;
    }
    Posted& next = posted(taken++);
    if (Step* const step = next.step.exchange(nullptr)) {
      between_seconds_ = 0.0;
      step->plan.between_layers = &between_layers_;
      step_began_.store(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(), std::memory_order_relaxed);
      execute(*step, *next.executor);
      step_began_.store(0, std::memory_order_relaxed);
      step->result.seconds = std::max(step->result.seconds - between_seconds_, kLeastSeconds);
    }
    done_.fetch_add(1);
    done_.notify_one();
    boost::asio::post(loop_, [mailbox = mailbox_] {
      if (mailbox->strand != nullptr) mailbox->strand->on_returned();
      if (mailbox->strand != nullptr) mailbox->strand->offer();  // it may have been destroyed
    });
  }
}

// Whatever waits to be run between two layers.
void ComputeStrand::run_between() {
  if (between_.step.load(std::memory_order_relaxed) == nullptr) return;
  Step* const step = between_.step.exchange(nullptr);
  if (step == nullptr) return;
  execute(*step, *between_.executor);
  between_seconds_ += step->result.seconds;
  between_done_.fetch_add(1);
  between_done_.notify_one();
  boost::asio::post(loop_, [mailbox = mailbox_] {
    if (mailbox->strand != nullptr) mailbox->strand->on_between_returned();
    if (mailbox->strand != nullptr) mailbox->strand->offer();
  });
}

void ComputeStrand::execute(Step& step, step::StepExecutor& executor) {
  const auto begin = std::chrono::steady_clock::now();
  step.result.clear();
  step.result.id = step.plan.id;
  try {
    executor.execute(step.plan, step.result);
  } catch (...) {
    step.result.clear();
    step.result.failure = std::current_exception();
  }
  if (step.result.seconds == 0.0) step.result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace braid::sched
