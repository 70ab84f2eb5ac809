#include "sched/compute_strand.h"

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

ComputeStrand::ComputeStrand(boost::asio::io_context& loop, step::StepExecutor& executor, std::function<void()> on_return)
    : loop_(loop), on_return_(std::move(on_return)), executor_(executor), mailbox_(std::make_shared<Mailbox>()) {
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

step::StepPlan& ComputeStrand::next_plan() {
  assert(can_post());
  step::StepPlan& plan = step(posted_).plan;
  plan.clear();
  plan.id = posted_;
  return plan;
}

void ComputeStrand::post() {
  assert(can_post());
  if (idle()) work_.emplace(loop_.get_executor());
  ++posted_;
  handed_.store(static_cast<std::uint32_t>(posted_), std::memory_order_seq_cst);  // notify_one() must not look for waiters before it
  handed_.notify_one();
}

double ComputeStrand::running_seconds() const {
  const std::int64_t began = step_began_.load(std::memory_order_relaxed);
  if (began == 0) return 0.0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::max(0.0, std::chrono::duration<double>(now - std::chrono::nanoseconds(began)).count());
}

const Step* ComputeStrand::returned() const { return popped_ != returned_ ? &steps_[popped_ % kMaxPosted] : nullptr; }

void ComputeStrand::on_returned() {
  ++returned_;
  if (returned_ == posted_) work_.reset();
  on_return_();
}

void ComputeStrand::run() {
  for (std::uint32_t taken = 0;; ++taken) {
    handed_.wait(taken, std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    execute(step(taken));
    boost::asio::post(loop_, [mailbox = mailbox_] {
      if (mailbox->strand != nullptr) mailbox->strand->on_returned();
    });
  }
}

void ComputeStrand::execute(Step& step) {
  const auto begin = std::chrono::steady_clock::now();
  step.result.clear();
  step.result.id = step.plan.id;
  step_began_.store(std::chrono::nanoseconds(begin.time_since_epoch()).count(), std::memory_order_relaxed);
  try {
    executor_.execute(step.plan, step.result);
  } catch (...) {
    step.result.clear();
    step.result.failure = std::current_exception();
  }
  step_began_.store(0, std::memory_order_relaxed);
  if (step.result.seconds == 0.0) step.result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace braid::sched
