#include "app/serving/prediction.h"

#include "model/networks/action_choice.h"
#include "model/networks/batching.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <span>
#include <utility>

namespace braid::app {
namespace {

// Of the inputs together: to join and to part them is done in one piece, and so is what comes of them.
constexpr std::size_t kMostJoined = std::size_t{1} << 15;
constexpr std::size_t kMostParted = std::size_t{1} << 20;  // of an output of theirs, were each input's number a row

std::size_t values_of(const Prediction& prediction) {
  std::size_t values = 0;
  for (const Tensor& input : prediction.inputs) values += static_cast<std::size_t>(value_count(input.shape));
  return values;
}

std::size_t width_of(const Prediction& prediction) {
  std::int64_t widest = 1;
  for (const std::size_t output : prediction.wanted) {
    std::int64_t width = 1;
    for (const Extent& extent : prediction.network->value_shape(prediction.network->shape().outputs[output].value).shape)
      if (extent.size > 0) width = std::min<std::int64_t>(width * std::min<std::int64_t>(extent.size, kMostParted), kMostParted);
    widest = std::max(widest, width);
  }
  return static_cast<std::size_t>(widest);
}

}  // namespace

void Prediction::deliver() {
  if (PredictionTicket* const to = std::exchange(ticket, nullptr)) to->receive(std::move(*outcome));
}

PredictionGroup::PredictionGroup(kernels::ThreadTeam& team, std::shared_ptr<Prediction> first)
    : network_(first->network), team_(team), values_(values_of(*first)), width_(width_of(*first)), last_(1), rank_(first->rank) {
  predictions_.push_back(std::move(first));
}

bool PredictionGroup::is_short() const { return values_ <= kMostJoined; }

bool PredictionGroup::take(const std::shared_ptr<Prediction>& prediction) {
  const Prediction& first = *predictions_.front();
  const std::size_t values = values_ + values_of(*prediction);
  if (prediction->network != network_ || network_->batch_axes().empty() || values > kMostJoined || values * width_ > kMostParted)
    return false;
  if (prediction->wanted != first.wanted || prediction->draw.has_value() != acts() || prediction->priority != priority()) return false;
  if (!model::may_join(first.inputs, prediction->inputs, network_->batch_axes())) return false;
  predictions_.push_back(prediction);
  values_ = values;
  last_ = predictions_.size();
  return true;
}

void PredictionGroup::begin() {
  has_begun_ = true;
  const bool is_alone = last_ - first_ == 1;
  std::vector<Tensor> inputs =
      is_alone ? std::move(predictions_[first_]->inputs) : std::vector<Tensor>(predictions_[first_]->inputs.size());
  for (std::size_t i = 0; i < inputs.size() && !is_alone; ++i) {
    std::vector<const Tensor*> parts;
    for (std::size_t p = first_; p < last_; ++p) parts.push_back(&predictions_[p]->inputs[i]);
    inputs[i] = model::join(parts, network_->batch_axes()[i]);
  }
  run_.emplace(*network_, std::move(inputs), predictions_[first_]->wanted, team_);
}

bool PredictionGroup::advance() {
  try {
    if (draws_) return advance_draws();
    if (!run_) begin();
    if (!run_->done())
      if (const Result<void> advanced = run_->advance(); !advanced) return end(advanced.error());
    return run_->done() ? end(run_->take_outputs()) : true;
  } catch (const std::exception& bug) {
    return end(Error{ErrorCode::kInternal, fmt::format("the prediction failed inside the server: {}", bug.what()), {}});
  }
}

// To each its own rows, or what it draws from them.
void PredictionGroup::give(std::vector<Tensor> outputs) {
  const std::span<const std::shared_ptr<Prediction>> own = std::span(predictions_).subspan(first_, last_ - first_);
  std::vector<std::vector<Tensor>> parts(own.size());
  if (own.size() == 1) {
    parts.front() = std::move(outputs);
  } else {
    std::vector<std::int64_t> sizes;
    for (const auto& prediction : own) sizes.push_back(prediction->inputs.front().shape[network_->batch_axes().front()]);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const model::ValueId value = network_->shape().outputs[own.front()->wanted[i]].value;
      std::vector<Tensor> rows = model::split(outputs[i], network_->batch_axes()[static_cast<std::size_t>(value)], sizes);
      for (std::size_t p = 0; p < own.size(); ++p) parts[p].push_back(std::move(rows[p]));
    }
  }
  for (std::size_t p = 0; p < own.size(); ++p) {
    if (own[p]->draw) {
      own[p]->outcome = model::choose_actions(*network_->shape().policy, *own[p]->draw, std::move(parts[p]));
    } else {
      own[p]->outcome = std::move(parts[p]);
    }
  }
}

// Whether there is more to compute: what fails together is computed one by one. Who acts alone may have many actions to be drawn.
bool PredictionGroup::end(Result<std::vector<Tensor>> outputs) {
  run_.reset();
  draws_.reset();
  const bool is_alone = last_ - first_ == 1;
  if (!outputs && !is_alone) {
    last_ = first_ + 1;
    return true;
  }
  Prediction& first = *predictions_[first_];
  if (!outputs) {
    first.outcome = outputs.error();
  } else if (is_alone && first.draw) {
    draws_.emplace(*network_->shape().policy, *first.draw, std::move(*outputs));
    return true;
  } else {
    give(std::move(*outputs));
  }
  return go_on();
}

bool PredictionGroup::advance_draws() {
  if (const Result<void> advanced = draws_->advance(); !advanced) return end(advanced.error());
  if (!draws_->done()) return true;
  predictions_[first_]->outcome = draws_->take();
  draws_.reset();
  return go_on();
}

bool PredictionGroup::go_on() {
  const bool was_parted = last_ < predictions_.size();
  first_ = last_;
  if (was_parted) ++last_;
  return first_ < predictions_.size();
}

}  // namespace braid::app
