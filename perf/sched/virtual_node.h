// One server of a simulated set: the real scheduler and prefix cache over a model that computes nothing and takes virtual time.
#pragma once

#include "sched/compute_strand.h"
#include "sched/scheduler.h"
#include "step/step.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

namespace braid::perf {

// What a step takes, in seconds.
struct StepCost {
  double read = 0.034;      // all weights once
  double row = 0.0007;      // each further answer's token
  double prompt = 0.00073;  // each token of a prompt
};

// A step says how long it takes and waits for its end to be told. Its tokens follow from their positions alone.
class VirtualModel final : public step::StepExecutor {
 public:
  VirtualModel(StepCost cost, std::int32_t slots) : cost_(cost), left_(static_cast<std::size_t>(slots), 0) {}

  void execute(const step::StepPlan& plan, step::StepResult& result) override {
    for (const step::SlotStart& start : plan.starts) left_[start.slot] = start.stop.max_tokens - start.generated;
    if (plan.rows.empty()) return;
    std::int32_t decoding = 0;
    std::int32_t reading = 0;
    for (const step::StepRow& row : plan.rows) {
      row.from_sampler() ? ++decoding : reading += row.count;
      step::RowResult& out = result.rows.emplace_back();
      out.slot = row.slot;
      out.ran = !row.samples() || left_[row.slot] > 0;
      out.sampled = row.samples() && out.ran;
      out.token = kAnswer;
      if (out.sampled) out.finished = --left_[row.slot] == 0;
      out.reason = FinishReason::kLength;
    }
    result.seconds = seconds_ = cost_.read + cost_.row * std::max(0, decoding - 1) + cost_.prompt * reading;
    begun_.release();
    end_.acquire();
  }

  static constexpr TokenId kAnswer = 1;  // each token of an answer

  // By the thread that simulates.
  std::optional<double> begun() { return begun_.try_acquire() ? std::optional(seconds_) : std::nullopt; }
  void end() { end_.release(); }

 private:
  const StepCost cost_;
  std::vector<std::int32_t> left_;
  double seconds_ = 0.0;
  std::binary_semaphore begun_{0};
  std::binary_semaphore end_{0};
};

class VirtualNode {
 public:
  VirtualNode(StepCost cost, const sched::SchedulerOptions& options)
      : model_(cost, options.max_batch), strand_(loop_), scheduler_(std::make_unique<sched::Scheduler>(loop_, strand_, model_, options)) {}
  ~VirtualNode() {
    scheduler_->begin_drain();
    scheduler_->abort_remaining({ErrorCode::kDraining, "the simulation ends", {}});
    while (settle() || is_computing_) end_step();
    work_.reset();
    loop_.run();
    scheduler_.reset();
  }
  VirtualNode(const VirtualNode&) = delete;
  VirtualNode& operator=(const VirtualNode&) = delete;

  boost::asio::io_context& loop() { return loop_; }
  sched::Scheduler& scheduler() { return *scheduler_; }

  // Everything that can happen at this moment happens. How long the step takes that begins, if one does.
  std::optional<double> settle() {
    for (;;) {
      loop_.poll();
      if (is_computing_) return std::nullopt;
      if (const std::optional<double> seconds = model_.begun()) {
        is_computing_ = true;
        return seconds;
      }
      if (strand_.idle()) return std::nullopt;
      std::this_thread::yield();
    }
  }

  // The step's time is over: its tokens go to their readers.
  void end_step() {
    if (!is_computing_) return;
    is_computing_ = false;
    model_.end();
    for (++steps_; scheduler_->stats().steps < steps_;) loop_.run_one();
  }

 private:
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.get_executor()};
  VirtualModel model_;
  sched::ComputeStrand strand_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  bool is_computing_ = false;
  std::uint64_t steps_ = 0;
};

}  // namespace braid::perf
