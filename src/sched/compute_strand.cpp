#include "sched/compute_strand.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <utility>

namespace braid::sched {

// Where the completions of the two steps live while they are in the loop's queue: posting one allocates nothing.
// A slot is free again before its step can be posted anew, so nothing needs to track its use.
struct ComputeStrand::Mailbox {
  static constexpr std::size_t kSlotBytes = 192;
  alignas(std::max_align_t) std::array<std::array<std::byte, kSlotBytes>, kMaxPosted> slots;
  ComputeStrand* strand = nullptr;  // null once the strand is gone
};

template <class T>
struct ComputeStrand::MailboxAllocator {
  using value_type = T;

  std::shared_ptr<Mailbox> mailbox;
  std::uint32_t slot;

  MailboxAllocator(std::shared_ptr<Mailbox> owner, std::uint32_t index) : mailbox(std::move(owner)), slot(index) {}
  template <class U>
  MailboxAllocator(const MailboxAllocator<U>& other) : mailbox(other.mailbox), slot(other.slot) {}

  T* allocate(std::size_t count) const {
    static_assert(sizeof(T) <= Mailbox::kSlotBytes && alignof(T) <= alignof(std::max_align_t));
    assert(count == 1);
    static_cast<void>(count);
    return reinterpret_cast<T*>(mailbox->slots[slot].data());
  }
  void deallocate(T*, std::size_t) const {}

  template <class U>
  bool operator==(const MailboxAllocator<U>& other) const {
    return mailbox == other.mailbox && slot == other.slot;
  }
};

struct ComputeStrand::Return {
  std::shared_ptr<Mailbox> mailbox;
  std::uint32_t slot;

  using allocator_type = MailboxAllocator<std::byte>;
  allocator_type get_allocator() const { return {mailbox, slot}; }

  void operator()() const {
    if (mailbox->strand != nullptr) mailbox->strand->on_returned();
  }
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
    Return completion{mailbox_, taken % kMaxPosted};
    boost::asio::post(loop_, std::move(completion));
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
