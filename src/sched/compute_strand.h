// The thread that computes, for all engines of a process.
#pragma once

#include "braid/pausable.h"
#include "sched/arbiter.h"
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
#include <vector>

namespace braid::sched {

class StrandLane;

// A plan and, once it has come back, its result.
struct Step {
  step::StepPlan plan;
  step::StepResult result;
};

// Runs posted steps one after the other on a thread of its own. All members belong to the loop; engines post through their lanes.
// Two steps may be out in all, so that the thread finds the next one when it ends one, and nobody's wait for more than these; and besides
// one small one (StrandLane::Steps), which runs between two layers of the one that runs, or before the next. It allocates nothing for its
// part. Idle, it sleeps in the kernel. While steps are out, the io_context counts them as work.
// Lanes are destroyed before it; the io_context outlives it.
class ComputeStrand final : public Pausable {
 public:
  static constexpr std::uint32_t kMaxPosted = 2;

  // `on_busy`, if any, is called when a step is posted while none was out.
  explicit ComputeStrand(boost::asio::io_context& loop, std::function<void()> on_busy = {});
  ~ComputeStrand() override;
  ComputeStrand(const ComputeStrand&) = delete;
  ComputeStrand& operator=(const ComputeStrand&) = delete;

  // How long the step that runs has been running; 0 when none does.
  double running_seconds() const;
  bool idle() const { return posted_ == returned_ && !is_between_out(); }

  // Nobody has a turn until resume().
  void pause() override { is_paused_ = true; }
  void resume() override;
  bool is_paused() const override { return is_paused_; }

 private:
  friend StrandLane;

  struct Mailbox;

  // A step in the order of posting. Whoever takes `step` has it: the thread to run it, or a lane that ends before its turn.
  struct Posted {
    std::atomic<Step*> step{nullptr};
    step::StepExecutor* executor = nullptr;
    StrandLane* lane = nullptr;  // loop; null once it is gone
  };

  Posted& posted(std::uint64_t number) { return steps_[number % kMaxPosted]; }
  bool has_room() const { return !is_paused_ && posted_ - returned_ < kMaxPosted; }
  bool is_between_out() const { return between_posted_ != between_returned_; }
  bool has_room_between() const { return !is_paused_ && posted_ != returned_ && !is_between_out(); }
  void join(StrandLane& lane);
  void leave(const StrandLane& lane);
  bool grant(StrandLane& lane);
  void pass(const StrandLane& lane);
  void post(StrandLane& lane, Step& step);
  bool runs(const StrandLane& lane) const;
  void hand(Posted& to, StrandLane& lane, Step& step);
  void leave_between();
  void offer() const;
  void on_returned();
  void on_between_returned();
  void come_back(StrandLane* lane);

  void run();
  void run_between();
  void execute(Step& step, step::StepExecutor& executor);

  // Loop.
  boost::asio::io_context& loop_;
  std::function<void()> on_busy_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  Arbiter arbiter_;
  std::vector<StrandLane*> lanes_;  // by Arbiter::Member
  std::uint64_t posted_ = 0;
  std::uint64_t returned_ = 0;
  bool is_paused_ = false;

  std::uint32_t between_posted_ = 0;
  std::uint32_t between_returned_ = 0;

  std::array<Posted, kMaxPosted> steps_;
  Posted between_;
  std::atomic<std::uint32_t> handed_{0};        // the low bits of posted_
  std::atomic<std::uint32_t> calls_{0};         // of the thread, for whatever reason: what a futex can wait for
  std::atomic<std::uint32_t> done_{0};          // steps that the thread has nothing to do with any more
  std::atomic<std::uint32_t> between_done_{0};  // likewise, of those between layers
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> step_began_{0};  // nanoseconds of the steady clock; 0: none runs. Read by the watchdog only
  const std::function<void()> between_layers_ = [this] { run_between(); };
  double between_seconds_ = 0.0;      // of the thread: within the step that runs
  std::shared_ptr<Mailbox> mailbox_;  // shared with completions that outlive the strand in the loop's queue
  std::thread thread_;
};

}  // namespace braid::sched
