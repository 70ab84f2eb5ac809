#include "app/serving/network_predictor.h"

#include "model/networks/action_choice.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
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

void NetworkPredictor::Executor::execute(const step::StepPlan&, step::StepResult&) {
  team_.pin_strand();
  const Clock::time_point until = Clock::now() + kMostOfStep;
  while (!groups.empty()) {
    while (groups.front()->advance()) {
      if (Clock::now() >= until) return;
    }
    std::ranges::copy(groups.front()->predictions(), std::back_inserter(ended));
    groups.pop_front();
    if (Clock::now() >= until) return;
  }
}

NetworkPredictor::NetworkPredictor(asio::io_context& loop, sched::ComputeStrand& strand, std::shared_ptr<const model::Network> network,
                                   kernels::ThreadTeam& team, std::size_t most_waiting)
    : network_(std::move(network)), team_(team), most_waiting_(most_waiting), policy_(network_->shape().policy),
      inputs_(network_->shape().inputs), outputs_(outputs_of(*network_)), executor_(team),
      lane_(
          strand, executor_, [this] { on_returned(); }, [this] { pump(); }),
      drain_deadline_(loop) {}

NetworkPredictor::~NetworkPredictor() { abort_remaining({ErrorCode::kDraining, "the server is shutting down", {}}); }

PredictorStats NetworkPredictor::stats() const {
  PredictorStats stats = counters_;
  stats.waiting = static_cast<std::uint32_t>(waiting_.size());
  stats.running = static_cast<std::uint32_t>(running());
  return stats;
}

std::size_t NetworkPredictor::running() const {
  if (!lane_.idle()) return in_step_;
  std::size_t count = executor_.ended.size();
  for (const auto& group : executor_.groups) count += group->predictions().size();
  return count;
}

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
  std::erase_if(waiting_, [](const auto& prediction) { return prediction->is_abandoned(); });
  if (waiting_.size() >= most_waiting_) {
    ++counters_.refused;
    return Error{.code = ErrorCode::kOverloaded,
                 .message = fmt::format("{} predictions wait already; try again later", waiting_.size()),
                 .param = {},
                 .retry_after = std::chrono::seconds(1)};
  }
  auto inputs = network_->complete(std::move(given));
  if (!inputs) return inputs.error();
  auto prediction = std::make_shared<Prediction>();
  prediction->network = network_;
  prediction->inputs = std::move(*inputs);
  prediction->wanted = std::move(wanted);
  prediction->draw = std::move(draw);
  auto ticket = std::make_unique<PredictionTicket>(prediction);
  waiting_.push_back(std::move(prediction));
  pump();
  return ticket;
}

// As few groups as possible; of those that begin now.
void NetworkPredictor::form_groups() {
  const auto begun = static_cast<std::ptrdiff_t>(executor_.groups.size());
  for (auto& prediction : waiting_) {
    prediction->started = true;
    const auto takes = [&prediction](const auto& group) { return group->take(prediction); };
    if (std::any_of(executor_.groups.begin() + begun, executor_.groups.end(), takes)) continue;
    executor_.groups.push_back(std::make_unique<PredictionGroup>(team_, std::move(prediction)));
    ++counters_.evaluations;
  }
  waiting_.clear();
  // Who acts waits for an answer to go on, and comes before all others.
  std::ranges::stable_partition(executor_.groups, [](const auto& group) { return group->acts(); });
}

// One step of the network's is out at a time, so that the executor's groups have one owner.
void NetworkPredictor::pump() {
  if (!lane_.idle()) return;
  std::erase_if(waiting_, [](const auto& prediction) { return prediction->is_abandoned(); });
  if (waiting_.empty() && executor_.groups.empty()) {
    lane_.pass();
    return;
  }
  if (!lane_.take_turn()) return;
  form_groups();
  in_step_ = running();
  lane_.next_plan();
  lane_.post();
}

void NetworkPredictor::on_returned() {
  while (lane_.returned() != nullptr) lane_.pop();
  for (const auto& prediction : std::exchange(executor_.ended, {})) {
    ++(prediction->outcome->has_value() ? counters_.finished : counters_.failed);
    prediction->deliver();
  }
  if (abort_reason_) fail_groups(*abort_reason_);
  std::erase_if(executor_.groups, [](const auto& group) {
    return std::ranges::all_of(group->predictions(), [](const auto& prediction) { return prediction->is_abandoned(); });
  });
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
  for (const auto& prediction : waiting_) fail(*prediction, reason);
  waiting_.clear();
  if (!lane_.idle()) return;  // its step's predictions are answered when it is back
  fail_groups(reason);
}

void NetworkPredictor::fail(Prediction& prediction, const Error& reason) {
  prediction.outcome = reason;
  prediction.deliver();
}

void NetworkPredictor::fail_groups(const Error& reason) {
  for (const auto& group : executor_.groups)
    for (const auto& prediction : group->predictions()) fail(*prediction, reason);
  executor_.groups.clear();
}

}  // namespace braid::app
