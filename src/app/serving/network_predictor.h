// One small network on the compute strand: predictions wait in a queue, and all that wait share the network's next step, and its products
// where their sizes allow it.
#pragma once

#include "app/serving/prediction.h"
#include "braid/predictor.h"
#include "braid/weights.h"
#include "kernels/thread_team.h"
#include "model/networks/network.h"
#include "sched/compute_strand.h"
#include "sched/rank.h"
#include "sched/strand_lane.h"
#include "step/step.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {

struct PredictorOptions {
  std::size_t most_waiting = 0;
  std::chrono::milliseconds priority_ageing{10'000};  // as sched::SchedulerOptions has it
};

// Loop only. Strand, team and loop outlive it; tickets may not.
class NetworkPredictor final : public Predictor {
 public:
  NetworkPredictor(boost::asio::io_context& loop, sched::ComputeStrand& strand, std::shared_ptr<const model::Network> network,
                   kernels::ThreadTeam& team, const PredictorOptions& options);
  ~NetworkPredictor() override;

  std::span<const TensorSignature> inputs() const override { return inputs_; }
  std::span<const TensorSignature> outputs() const override { return outputs_; }
  Result<std::unique_ptr<PendingPrediction>> submit(std::vector<std::optional<Tensor>> given, std::vector<std::size_t> wanted,
                                                    std::int32_t priority) override;
  const PolicyForm* policy() const override { return policy_ ? &*policy_ : nullptr; }
  Result<std::unique_ptr<PendingPrediction>> act(std::vector<std::optional<Tensor>> given, ActionDraw draw, std::int32_t priority) override;

  // What is submitted from now on is computed by another revision, of the same inputs and outputs. kKeep: so is what has not begun; kAbort: what
  // waits or runs ends with kCancelled, but for what the step that is out brings. Without memory to tell them, it throws, and the others end on
  // the older one.
  void replace(std::shared_ptr<const model::Network> network, const std::string& revision, UpdateMode mode);

  // Predictions that wait or run.
  std::size_t count() const { return waiting_.size() + running(); }
  PredictorStats stats() const override;

  void begin_drain();  // no new work
  // After that: true when all that was accepted has ended, false when the deadline came first.
  boost::asio::awaitable<bool> drained(std::chrono::steady_clock::time_point until);
  void abort_remaining(const Error& reason);

 private:
  // Runs pieces of the groups given to it, in their order, until its time is up. Of the strand while a step is out, of the loop otherwise.
  class Executor final : public step::StepExecutor {
   public:
    explicit Executor(kernels::ThreadTeam& team) : team_(team) {}
    void execute(const step::StepPlan& plan, step::StepResult& result) override;

    std::chrono::microseconds time{0};  // of the next step
    std::deque<std::unique_ptr<PredictionGroup>> groups;
    std::vector<std::shared_ptr<Prediction>> ended;
    PredictionGroup* left = nullptr;  // what had not ended when the time was up
    std::uint64_t begun = 0;          // groups

   private:
    kernels::ThreadTeam& team_;
  };

  struct Newer {
    std::shared_ptr<const model::Network> network;
    std::string revision;
  };

  Result<std::unique_ptr<PendingPrediction>> enqueue(std::vector<std::optional<Tensor>> given, std::vector<std::size_t> wanted,
                                                     std::optional<ActionDraw> draw, std::int32_t priority);
  Error overloaded(const sched::Rank& rank) const;
  std::size_t running() const;
  void pump();
  bool may_begin(const PredictionGroup& group, std::size_t under_way) const;
  void form_groups();
  void take_back();
  static void renew(Prediction& prediction, const Newer& newer);
  void on_returned();
  static void fail(Prediction& prediction, const Error& reason);
  void fail_all(const Error& reason);
  void fail_groups(const Error& reason);
  // The executor is asked once its step is back.
  bool idle() const { return lane_.idle() && waiting_.empty() && executor_.groups.empty() && executor_.ended.empty(); }

  std::shared_ptr<const model::Network> network_;
  kernels::ThreadTeam& team_;
  const PredictorOptions options_;
  const std::optional<PolicyForm> policy_;  // of all revisions, as inputs and outputs are; any thread
  const std::vector<TensorSignature> inputs_;
  const std::vector<TensorSignature> outputs_;
  std::map<sched::Rank, std::shared_ptr<Prediction>> waiting_;
  std::uint64_t next_serial_ = 0;
  Executor executor_;
  PredictorStats counters_;
  std::size_t in_step_ = 0;  // predictions of the step that is out
  sched::StrandLane lane_;
  boost::asio::steady_timer drain_deadline_;
  // Of what was given to the step that is out: what takes the place of its network where it has not begun, or why it ends.
  std::optional<Newer> newer_;
  std::optional<Error> replaced_;
  std::optional<Error> refusal_;       // of new work
  std::optional<Error> abort_reason_;  // of what is left
};

}  // namespace braid::app
