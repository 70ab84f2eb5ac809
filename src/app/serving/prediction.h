// A prediction from its submission to its end, and those that are evaluated as one. Each is of the loop or of the strand, as its step is.
#pragma once

#include "braid/predictor.h"
#include "kernels/thread_team.h"
#include "model/networks/action_choice.h"
#include "model/networks/network.h"
#include "sched/rank.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::app {

class PredictionTicket;

// The ticket's on the loop; its inputs and its outcome are its group's while a step is out.
struct Prediction {
  std::shared_ptr<const model::Network> network;   // the revision of its submission
  std::optional<std::string> newer_revision = {};  // or one that took its place since
  std::vector<Tensor> inputs;                      // as Network::complete() gives them
  std::vector<std::size_t> wanted;
  std::optional<ActionDraw> draw;  // what follows from the outputs is wanted, not themselves
  std::int32_t priority = 0;
  sched::Rank rank = sched::Rank::first();
  std::optional<Result<std::vector<Tensor>>> outcome;
  bool started = false;                // loop only
  PredictionTicket* ticket = nullptr;  // loop only; null: its client has gone

  bool is_abandoned() const { return ticket == nullptr; }
  void deliver();  // loop, while no step is out with it
};

class PredictionTicket final : public PendingPrediction {
 public:
  explicit PredictionTicket(std::shared_ptr<Prediction> prediction) : prediction_(std::move(prediction)) { prediction_->ticket = this; }
  ~PredictionTicket() override {
    if (prediction_) prediction_->ticket = nullptr;
  }

  std::optional<Result<std::vector<Tensor>>> try_take() override { return std::exchange(outcome_, std::nullopt); }
  std::optional<std::string> newer_revision() const override { return newer_revision_; }
  bool started() const override { return !prediction_ || prediction_->started; }
  Signal& arrived() override { return arrived_; }

  void cancel() override {
    if (!prediction_) return;
    prediction_->ticket = nullptr;
    receive(Error{ErrorCode::kCancelled, "the request was aborted", {}});
  }

  void receive(Result<std::vector<Tensor>> outcome) {
    outcome_ = std::move(outcome);
    if (prediction_) newer_revision_ = std::move(prediction_->newer_revision);
    prediction_.reset();
    arrived_.notify();
  }

 private:
  std::shared_ptr<Prediction> prediction_;  // until it has ended
  std::optional<Result<std::vector<Tensor>>> outcome_;
  std::optional<std::string> newer_revision_;
  Signal arrived_;
};

// Predictions whose rows lie one behind the other. What one of them gets wrong costs the others nothing: they are computed one by one then.
class PredictionGroup {
 public:
  // The team outlives it.
  PredictionGroup(kernels::ThreadTeam& team, std::shared_ptr<Prediction> first);

  bool acts() const { return predictions_.front()->draw.has_value(); }
  std::int32_t priority() const { return predictions_.front()->priority; }

  // When its turn comes, by its first prediction; after a turn that was not enough, as if it had come when that ended.
  const sched::Rank& rank() const { return rank_; }
  void set_rank(const sched::Rank& rank) { rank_ = rank; }

  bool has_begun() const { return has_begun_; }
  // Whether its inputs are few, so that it may run while a long one is under way.
  bool is_short() const;

  // Takes it in if it fits, and there is room. Before the first advance().
  bool take(const std::shared_ptr<Prediction>& prediction);

  // Computes a piece of about a millisecond. False: all have ended. Strand.
  bool advance();

  const std::vector<std::shared_ptr<Prediction>>& predictions() const { return predictions_; }

 private:
  void begin();
  void give(std::vector<Tensor> outputs);
  bool end(Result<std::vector<Tensor>> outputs);
  bool advance_draws();
  bool go_on();

  const std::shared_ptr<const model::Network> network_;
  kernels::ThreadTeam& team_;
  std::vector<std::shared_ptr<Prediction>> predictions_;
  std::size_t values_ = 0;   // of all inputs
  const std::size_t width_;  // numbers of its widest output for a row, as far as the network says
  std::size_t first_ = 0;    // of those that are being computed, and the one behind the last
  std::size_t last_ = 0;
  sched::Rank rank_;
  bool has_begun_ = false;
  std::optional<model::NetworkRun> run_;
  std::optional<model::ActionRun> draws_;  // of the outputs of one who acts
};

}  // namespace braid::app
