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

// What one step may take of the strand, so that answers of language models wait no longer than for a slice of a prompt. A piece is the
// least that a step does. Bits do not depend on where a run is left.
constexpr std::chrono::milliseconds kMostOfStep{5};
constexpr std::chrono::microseconds kMostBetweenLayers{500};

// Runs that have begun and not ended: each keeps its layers' values. Others begin when one of them ends.
constexpr std::size_t kMostUnderWay = 4;

// Of those that wait, in their order: groups that are formed for a step, and predictions that are looked at for them.
constexpr std::size_t kMostFresh = 16;
constexpr std::size_t kMostLookedAt = 1024;

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
  const Clock::time_point until = Clock::now() + time;
  while (!groups.empty()) {
    PredictionGroup& group = *groups.front();
    if (!group.has_begun()) ++begun;
    while (group.advance()) {
      if (Clock::now() < until) continue;
      left = &group;
      return;
    }
    std::ranges::copy(group.predictions(), std::back_inserter(ended));
    groups.pop_front();
    if (Clock::now() >= until) return;
  }
}

NetworkPredictor::NetworkPredictor(asio::io_context& loop, sched::ComputeStrand& strand, std::shared_ptr<const model::Network> network,
                                   kernels::ThreadTeam& team, const PredictorOptions& options)
    : network_(std::move(network)), team_(team), options_(options), policy_(network_->shape().policy), inputs_(network_->shape().inputs),
      outputs_(outputs_of(*network_)), executor_(team),
      lane_(
          strand, executor_, [this] { on_returned(); }, [this] { pump(); }, sched::StrandLane::Steps::kBetweenLayers),
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
                                                                    std::vector<std::size_t> wanted, std::int32_t priority) {
  return enqueue(std::move(given), std::move(wanted), std::nullopt, priority);
}

Result<std::unique_ptr<PendingPrediction>> NetworkPredictor::act(std::vector<std::optional<Tensor>> given, ActionDraw draw,
                                                                 std::int32_t priority) {
  if (policy() == nullptr) return Predictor::act(std::move(given), std::move(draw), priority);
  return enqueue(std::move(given), model::outputs_of_policy(*policy()), std::move(draw), priority);
}

Error NetworkPredictor::overloaded(const sched::Rank& rank) const {
  const auto place = std::distance(waiting_.begin(), waiting_.lower_bound(rank)) + 1;
  return {.code = ErrorCode::kOverloaded,
          .message = fmt::format("{} predictions wait already; try again later", waiting_.size()),
          .param = {},
          .retry_after = std::chrono::seconds(1),
          .queue_position = static_cast<std::uint32_t>(place)};
}

Result<std::unique_ptr<PendingPrediction>> NetworkPredictor::enqueue(std::vector<std::optional<Tensor>> given,
                                                                     std::vector<std::size_t> wanted, std::optional<ActionDraw> draw,
                                                                     std::int32_t priority) {
  if (refusal_) return *refusal_;
  std::erase_if(waiting_, [](const auto& each) { return each.second->is_abandoned(); });
  const sched::Rank rank(Clock::now(), priority, options_.priority_ageing, next_serial_++);
  if (waiting_.size() >= options_.most_waiting) {
    ++counters_.refused;
    return overloaded(rank);
  }
  auto inputs = network_->complete(std::move(given));
  if (!inputs) return inputs.error();
  auto prediction = std::make_shared<Prediction>();
  prediction->network = network_;
  prediction->inputs = std::move(*inputs);
  prediction->wanted = std::move(wanted);
  prediction->draw = std::move(draw);
  prediction->priority = priority;
  prediction->rank = rank;
  auto ticket = std::make_unique<PredictionTicket>(prediction);
  waiting_.emplace(rank, std::move(prediction));
  pump();
  return ticket;
}

// While a long one is under way, only what is short or more urgent begins. Of those that begin in one step one is left in the middle at
// most.
bool NetworkPredictor::may_begin(const PredictionGroup& group, std::size_t under_way) const {
  const auto is_before = [&group](const auto& other) { return other->is_short() || group.priority() < other->priority(); };
  const auto begun = executor_.groups.begin() + static_cast<std::ptrdiff_t>(under_way);
  return under_way == 0 || (under_way < kMostUnderWay && (group.is_short() || std::all_of(executor_.groups.begin(), begun, is_before)));
}

void NetworkPredictor::replace(std::shared_ptr<const model::Network> network, const std::string& revision, UpdateMode mode) {
  network_ = std::move(network);
  if (mode == UpdateMode::kFinish) return;
  if (mode == UpdateMode::kKeep) {
    Newer newer{network_, revision};
    for (const auto& [rank, prediction] : waiting_) renew(*prediction, newer);
    if (!lane_.idle()) newer_ = std::move(newer);
    return;
  }
  Error reason{ErrorCode::kCancelled, "the weights of the network were replaced", {}};
  for (; !waiting_.empty(); waiting_.erase(waiting_.begin())) fail(*waiting_.begin()->second, reason);
  if (lane_.idle()) {
    fail_groups(reason);
  } else {
    replaced_ = std::move(reason);
  }
}

// All of it or nothing, where there is no memory.
void NetworkPredictor::renew(Prediction& prediction, const Newer& newer) {
  prediction.newer_revision = newer.revision;
  prediction.network = newer.network;
}

// As few groups as possible, of those that wait; they join those that are under way. A step reaches few, so no more are formed than it may.
void NetworkPredictor::form_groups() {
  const std::size_t under_way = executor_.groups.size();
  std::vector<std::unique_ptr<PredictionGroup>> fresh;
  std::size_t looked_at = 0;
  for (const auto& [rank, prediction] : waiting_) {
    if (++looked_at > kMostLookedAt) break;
    const auto takes = [&waits = prediction](const auto& group) { return group->take(waits); };
    if (std::ranges::any_of(fresh, takes) || fresh.size() == kMostFresh) continue;
    auto group = std::make_unique<PredictionGroup>(team_, prediction);
    if (may_begin(*group, under_way)) fresh.push_back(std::move(group));
  }
  for (auto& group : fresh) {
    if (!may_begin(*group, under_way)) continue;
    for (const auto& prediction : group->predictions()) {
      prediction->started = true;
      waiting_.erase(prediction->rank);
    }
    executor_.groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(executor_.groups, {}, [](const auto& group) { return group->rank(); });
}

// After a step: who was not reached in it waits again, perhaps to be joined with others. What was left in the middle has had a turn.
void NetworkPredictor::take_back() {
  if (const std::optional<Error> reason = std::exchange(replaced_, std::nullopt)) fail_groups(*reason);
  if (PredictionGroup* const left = std::exchange(executor_.left, nullptr))
    left->set_rank(sched::Rank(Clock::now(), left->priority(), options_.priority_ageing, next_serial_++));
  counters_.evaluations += std::exchange(executor_.begun, 0);
  std::erase_if(executor_.groups, [this](const auto& group) {
    if (group->has_begun()) return false;
    for (const auto& prediction : group->predictions()) {
      prediction->started = false;
      if (newer_) renew(*prediction, *newer_);
      waiting_.emplace(prediction->rank, prediction);
    }
    return true;
  });
  newer_.reset();
}

// One step of the network's is out at a time, so that the executor's groups have one owner.
void NetworkPredictor::pump() {
  if (!lane_.idle()) return;
  std::erase_if(waiting_, [](const auto& each) { return each.second->is_abandoned(); });
  if (waiting_.empty() && executor_.groups.empty()) {
    lane_.pass();
    if (refusal_ && idle()) drain_deadline_.cancel();
    return;
  }
  if (!lane_.take_turn()) return;
  executor_.time = lane_.goes_between() ? kMostBetweenLayers : std::chrono::microseconds(kMostOfStep);
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
  take_back();
  if (abort_reason_) fail_all(*abort_reason_);
  std::erase_if(executor_.groups, [](const auto& group) {
    return std::ranges::all_of(group->predictions(), [](const auto& prediction) { return prediction->is_abandoned(); });
  });
  pump();
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
  if (!lane_.idle()) {  // its step's predictions are answered when it is back
    for (const auto& [rank, prediction] : waiting_) fail(*prediction, reason);
    waiting_.clear();
    return;
  }
  fail_all(reason);
}

void NetworkPredictor::fail(Prediction& prediction, const Error& reason) {
  prediction.outcome = reason;
  prediction.deliver();
}

void NetworkPredictor::fail_all(const Error& reason) {
  for (const auto& [rank, prediction] : waiting_) fail(*prediction, reason);
  waiting_.clear();
  fail_groups(reason);
}

void NetworkPredictor::fail_groups(const Error& reason) {
  for (const auto& group : executor_.groups)
    for (const auto& prediction : group->predictions()) fail(*prediction, reason);
  executor_.groups.clear();
  executor_.left = nullptr;
}

}  // namespace braid::app
