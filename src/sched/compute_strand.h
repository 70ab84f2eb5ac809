// The thread that computes. The only place where something crosses threads in the scheduler: a plan over, a result back.
#pragma once

#include "step/step.h"

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace braid::sched {

// A plan and, once it has come back, its result.
struct Step {
  step::StepPlan plan;
  step::StepResult result;
};

// Runs posted steps one after the other on a thread of its own. All members belong to the loop.
// Two steps may be out at once, so that the thread finds the next one when it ends one; both are recycled and the thread allocates
// nothing for its part. Idle, it sleeps in the kernel. While steps are out, the io_context counts them as work.
// Destroying it waits for the running step and drops what was not fetched; the io_context outlives it.
class ComputeStrand {
 public:
  static constexpr std::uint32_t kMaxPosted = 2;

  // `on_return` runs on the loop when a step has come back.
  ComputeStrand(boost::asio::io_context& loop, step::StepExecutor& executor, std::function<void()> on_return);
  ~ComputeStrand();
  ComputeStrand(const ComputeStrand&) = delete;
  ComputeStrand& operator=(const ComputeStrand&) = delete;

  bool can_post() const { return posted_ - popped_ < kMaxPosted; }
  // How long the step that runs has been running; 0 when none does.
  double running_seconds() const;
  bool idle() const { return posted_ == popped_; }

  // An empty plan to fill, with its id; needs can_post(). It stays the same one until post().
  step::StepPlan& next_plan();
  void post();

  // The oldest step that has come back and was not popped, or null. An exception of the executor is in result.failure.
  // result.seconds is the thread's own measurement unless the executor, having a better clock, has set it.
  const Step* returned() const;
  void pop() { ++popped_; }

 private:
  struct Mailbox;

  Step& step(std::uint64_t number) { return steps_[number % kMaxPosted]; }
  void run();
  void execute(Step& step);
  void on_returned();

  // Loop.
  boost::asio::io_context& loop_;
  std::function<void()> on_return_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::uint64_t posted_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t popped_ = 0;

  // Steps [returned_, posted_) belong to the thread.
  std::array<Step, kMaxPosted> steps_;
  std::atomic<std::uint32_t> handed_{0};  // the low bits of posted_: what a futex can wait for
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> step_began_{0};  // nanoseconds of the steady clock; 0: none runs. Read by the watchdog only
  step::StepExecutor& executor_;
  std::shared_ptr<Mailbox> mailbox_;  // shared with completions that outlive the strand in the loop's queue
  std::thread thread_;
};

}  // namespace braid::sched
