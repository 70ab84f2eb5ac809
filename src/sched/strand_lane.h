// An engine's way to the compute strand. The only place where something crosses threads in the scheduler: a plan over, a result back.
#pragma once

#include "sched/compute_strand.h"
#include "step/step.h"

#include <array>
#include <cstdint>
#include <functional>

namespace braid::sched {

// Loop only. Both of its steps are recycled. Destroying it waits for its step that runs and drops what was not fetched; strand and executor
// outlive it.
class StrandLane {
 public:
  // kBetweenLayers: its steps, of which one is out at a time, may run in the middle of another engine's, where they are to be short
  // (goes_between()).
  enum class Steps { kInLine, kBetweenLayers };
  // `on_return` runs on the loop when a step has come back, `on_turn` when it is this engine's turn, for which it had to wait.
  StrandLane(ComputeStrand& strand, step::StepExecutor& executor, std::function<void()> on_return, std::function<void()> on_turn,
             Steps steps = Steps::kInLine);
  ~StrandLane();
  StrandLane(const StrandLane&) = delete;
  StrandLane& operator=(const StrandLane&) = delete;

  // Whether it is this engine's turn; then it posts a step at once, or passes. Otherwise `on_turn` comes later, or `on_return`.
  bool take_turn();
  void pass();  // there is nothing to post
  // Of the turn that it has: the step will run between two layers of the one that runs, or before the next one.
  bool goes_between() const { return goes_between_; }

  // An empty plan to fill, with its id. It stays the same one until post().
  step::StepPlan& next_plan();
  void post();

  // The oldest step that has come back and was not popped, or null. An exception of the executor is in result.failure.
  // result.seconds is the thread's own measurement unless the executor, having a better clock, has set it.
  const Step* returned() const;
  void pop() { ++popped_; }

  bool idle() const { return posted_ == popped_; }
  // How long its step that runs has been running; 0 when none of its does.
  double running_seconds() const { return strand_.runs(*this) ? strand_.running_seconds() : 0.0; }
  // Among how many engines the strand's time is shared now, this one included.
  std::int32_t sharers() const;

 private:
  friend ComputeStrand;

  // Steps that come back in the order of posting.
  std::uint64_t most_out() const { return kind_ == Steps::kBetweenLayers ? 1 : steps_.size(); }
  double come_back();  // of the oldest step that is out: its seconds

  ComputeStrand& strand_;
  step::StepExecutor& executor_;
  std::function<void()> on_return_;
  std::function<void()> on_turn_;
  Arbiter::Member member_ = 0;
  const Steps kind_;
  bool goes_between_ = false;
  std::uint64_t posted_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t popped_ = 0;
  std::array<Step, ComputeStrand::kMaxPosted> steps_;  // [returned_, posted_) belong to the thread
};

}  // namespace braid::sched
