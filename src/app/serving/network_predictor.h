// One small network on the compute strand: predictions wait in a queue, and all that wait share the network's next step.
#pragma once

#include "braid/predictor.h"
#include "kernels/thread_team.h"
#include "model/networks/network.h"
#include "sched/compute_strand.h"
#include "sched/strand_lane.h"
#include "step/step.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace braid::app {

// Loop only. Strand, team and loop outlive it; tickets may not.
class NetworkPredictor final : public Predictor {
 public:
  NetworkPredictor(boost::asio::io_context& loop, sched::ComputeStrand& strand, std::shared_ptr<const model::Network> network,
                   kernels::ThreadTeam& team, std::size_t most_waiting);
  ~NetworkPredictor() override;

  std::span<const TensorSignature> inputs() const override { return inputs_; }
  std::span<const TensorSignature> outputs() const override { return outputs_; }
  Result<std::unique_ptr<PendingPrediction>> submit(std::vector<std::optional<Tensor>> given, std::vector<std::size_t> wanted) override;
  const PolicyForm* policy() const override { return network_->shape().policy ? &*network_->shape().policy : nullptr; }
  Result<std::unique_ptr<PendingPrediction>> act(std::vector<std::optional<Tensor>> given, ActionDraw draw) override;

  // What is submitted from now on is computed by another revision, of the same inputs and outputs.
  void replace(std::shared_ptr<const model::Network> network) { network_ = std::move(network); }

  // Predictions that wait or run.
  std::size_t count() const { return waiting_.size() + executor_.jobs.size(); }

  void begin_drain();  // no new work
  // After that: true when all that was accepted has ended, false when the deadline came first.
  boost::asio::awaitable<bool> drained(std::chrono::steady_clock::time_point until);
  void abort_remaining(const Error& reason);

 private:
  class Job;
  class Ticket;

  // Runs layers of the jobs given to it until its time is up. Of the strand while a step is out, of the loop otherwise.
  class Executor final : public step::StepExecutor {
   public:
    explicit Executor(kernels::ThreadTeam& team) : team_(team) {}
    void execute(const step::StepPlan& plan, step::StepResult& result) override;

    std::deque<std::shared_ptr<Job>> jobs;

   private:
    kernels::ThreadTeam& team_;
  };

  Result<std::unique_ptr<PendingPrediction>> enqueue(std::vector<std::optional<Tensor>> given, std::vector<std::size_t> wanted,
                                                     std::optional<ActionDraw> draw);
  void pump();
  void on_returned();
  bool idle() const { return waiting_.empty() && executor_.jobs.empty() && lane_.idle(); }

  std::shared_ptr<const model::Network> network_;
  kernels::ThreadTeam& team_;
  const std::size_t most_waiting_;
  const std::vector<TensorSignature> inputs_;
  const std::vector<TensorSignature> outputs_;
  std::deque<std::shared_ptr<Job>> waiting_;
  Executor executor_;
  sched::StrandLane lane_;
  boost::asio::steady_timer drain_deadline_;
  std::optional<Error> refusal_;       // of new work
  std::optional<Error> abort_reason_;  // of what is left
};

}  // namespace braid::app
