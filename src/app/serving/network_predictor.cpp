#include "app/serving/network_predictor.h"

#include "model/networks/action_choice.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace braid::app {

namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// What one step may take of the strand, so that answers of language models wait no longer than for a slice of a prompt. A layer is the
// least that a step does. Bits do not depend on where a run is left.
constexpr std::chrono::milliseconds kMostOfStep{5};

std::vector<TensorSignature> outputs_of(const model::Network& network) {
  std::vector<TensorSignature> outputs;
  for (const model::NetworkOutput& output : network.shape().outputs) {
    const model::ValueShape& value = network.value_shape(output.value);
    outputs.push_back({.name = output.name, .type = value.type, .shape = value.shape, .optional = false});
  }
  return outputs;
}

}  // namespace

// A prediction: the ticket's on the loop, the executor's while a step is out.
class NetworkPredictor::Job {
 public:
  Job(std::shared_ptr<const model::Network> network, std::vector<Tensor> inputs, std::vector<std::size_t> wanted,
      std::optional<ActionDraw> draw, kernels::ThreadTeam& team)
      : network_(std::move(network)), policy_(network_->shape().policy ? &*network_->shape().policy : nullptr), draw_(std::move(draw)),
        run_(*network_, std::move(inputs), std::move(wanted), team) {}

  bool acts() const { return draw_.has_value(); }

  // Strand. False: it has ended.
  bool advance() {
    try {
      if (const Result<void> advanced = run_.advance(); !advanced) outcome_ = advanced.error();
      if (!outcome_ && run_.done()) outcome_ = draw_ ? model::choose_actions(*policy_, *draw_, run_.take_outputs()) : run_.take_outputs();
    } catch (const std::exception& bug) {
      outcome_ = Error{ErrorCode::kInternal, fmt::format("the prediction failed inside the server: {}", bug.what()), {}};
    }
    return !outcome_;
  }

  // Loop, while no step is out with it.
  bool ended() const { return outcome_.has_value() || is_abandoned(); }
  bool is_abandoned() const { return ticket_ == nullptr; }
  void deliver();
  void fail(const Error& reason) {
    outcome_ = reason;
    deliver();
  }

 private:
  friend Ticket;

  const std::shared_ptr<const model::Network> network_;  // the revision of its submission
  const PolicyForm* policy_;                             // the network's; null: it has none
  const std::optional<ActionDraw> draw_;
  model::NetworkRun run_;
  std::optional<Result<std::vector<Tensor>>> outcome_;
  Ticket* ticket_ = nullptr;  // loop only; null: its client has gone
};

class NetworkPredictor::Ticket final : public PendingPrediction {
 public:
  explicit Ticket(std::shared_ptr<Job> job) : job_(std::move(job)) { job_->ticket_ = this; }
  ~Ticket() override {
    if (job_) job_->ticket_ = nullptr;
  }

  std::optional<Result<std::vector<Tensor>>> try_take() override { return std::exchange(outcome_, std::nullopt); }
  Signal& arrived() override { return arrived_; }

 private:
  friend Job;

  void receive(Result<std::vector<Tensor>> outcome) {
    outcome_ = std::move(outcome);
    job_.reset();
    arrived_.notify();
  }

  std::shared_ptr<Job> job_;  // until it has ended
  std::optional<Result<std::vector<Tensor>>> outcome_;
  Signal arrived_;
};

void NetworkPredictor::Job::deliver() {
  if (Ticket* const ticket = std::exchange(ticket_, nullptr)) ticket->receive(std::move(*outcome_));
}

void NetworkPredictor::Executor::execute(const step::StepPlan&, step::StepResult&) {
  team_.pin_strand();
  const Clock::time_point until = Clock::now() + kMostOfStep;
  for (const auto& job : jobs) {
    while (job->advance()) {
      if (Clock::now() >= until) return;
    }
    if (Clock::now() >= until) return;
  }
}

NetworkPredictor::NetworkPredictor(asio::io_context& loop, sched::ComputeStrand& strand, std::shared_ptr<const model::Network> network,
                                   kernels::ThreadTeam& team, std::size_t most_waiting)
    : network_(std::move(network)), team_(team), most_waiting_(most_waiting), inputs_(network_->shape().inputs),
      outputs_(outputs_of(*network_)), executor_(team), lane_(
                                                            strand, executor_, [this] { on_returned(); }, [this] { pump(); }),
      drain_deadline_(loop) {}

NetworkPredictor::~NetworkPredictor() { abort_remaining({ErrorCode::kDraining, "the server is shutting down", {}}); }

Result<std::unique_ptr<PendingPrediction>> NetworkPredictor::submit(std::vector<std::optional<Tensor>> given,
                                                                    std::vector<std::size_t> wanted) {
  return enqueue(std::move(given), std::move(wanted), std::nullopt);
}

Result<std::unique_ptr<PendingPrediction>> NetworkPredictor::act(std::vector<std::optional<Tensor>> given, ActionDraw draw) {
  if (policy() == nullptr) return Predictor::act(std::move(given), std::move(draw));
  return enqueue(std::move(given), model::outputs_of_policy(*policy()), std::move(draw));
}

Result<std::unique_ptr<PendingPrediction>> NetworkPredictor::enqueue(std::vector<std::optional<Tensor>> given,
                                                                     std::vector<std::size_t> wanted, std::optional<ActionDraw> draw) {
  if (refusal_) return *refusal_;
  std::erase_if(waiting_, [](const auto& job) { return job->is_abandoned(); });
  if (waiting_.size() >= most_waiting_)
    return Error{.code = ErrorCode::kOverloaded,
                 .message = fmt::format("{} predictions wait already; try again later", waiting_.size()),
                 .param = {},
                 .retry_after = std::chrono::seconds(1)};
  auto inputs = network_->complete(std::move(given));
  if (!inputs) return inputs.error();
  auto job = std::make_shared<Job>(network_, std::move(*inputs), std::move(wanted), std::move(draw), team_);
  auto ticket = std::make_unique<Ticket>(job);
  waiting_.push_back(std::move(job));
  pump();
  return ticket;
}

// One step of the network's is out at a time, so that the executor's jobs have one owner.
void NetworkPredictor::pump() {
  if (!lane_.idle()) return;
  std::erase_if(waiting_, [](const auto& job) { return job->is_abandoned(); });
  if (waiting_.empty() && executor_.jobs.empty()) {
    lane_.pass();
    return;
  }
  if (!lane_.take_turn()) return;
  std::ranges::move(waiting_, std::back_inserter(executor_.jobs));
  waiting_.clear();
  // Who acts waits for an answer to go on, and comes before all others.
  std::ranges::stable_partition(executor_.jobs, [](const auto& job) { return job->acts(); });
  lane_.next_plan();
  lane_.post();
}

void NetworkPredictor::on_returned() {
  while (lane_.returned() != nullptr) lane_.pop();
  for (const auto& job : executor_.jobs) {
    if (job->ended()) {
      job->deliver();
    } else if (abort_reason_) {
      job->fail(*abort_reason_);
    }
  }
  std::erase_if(executor_.jobs, [](const auto& job) { return job->ended(); });
  pump();
  if (refusal_ && idle()) drain_deadline_.cancel();
}

void NetworkPredictor::begin_drain() { refusal_ = Error{ErrorCode::kDraining, "the server is shutting down", {}}; }

asio::awaitable<bool> NetworkPredictor::drained(Clock::time_point until) {
  drain_deadline_.expires_at(until);
  if (!idle()) co_await drain_deadline_.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return idle();
}

void NetworkPredictor::abort_remaining(const Error& reason) {
  refusal_ = reason;
  abort_reason_ = reason;
  for (const auto& job : waiting_) job->fail(reason);
  waiting_.clear();
  if (!lane_.idle()) return;  // its step's jobs are answered when it is back
  for (const auto& job : executor_.jobs) job->fail(reason);
  executor_.jobs.clear();
}

}  // namespace braid::app
