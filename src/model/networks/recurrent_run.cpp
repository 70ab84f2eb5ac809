#include "model/networks/recurrent_run.h"

#include "model/networks/activations.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace braid::model {
namespace {

// A piece more of the values. True: all are there.
bool copy_some(const Tensor& from, Tensor& to) {
  const std::size_t begin = to.floats.size();
  const std::size_t end = std::min(from.floats.size(), begin + static_cast<std::size_t>(parts_of_piece(kCopyWork)));
  to.floats.reserve(from.floats.size());
  to.floats.insert(to.floats.end(), from.floats.begin() + static_cast<std::ptrdiff_t>(begin),
                   from.floats.begin() + static_cast<std::ptrdiff_t>(end));
  return end == from.floats.size();
}

constexpr std::int64_t kStepWork = std::int64_t{1} << 13;  // of a step, however small: two products begin

// One step of one row: gates of the inputs and of the state, both with their biases, to the next state.
void step_lstm(const kernels::KernelTable& table, float* gates, const float* of_state, std::int64_t hidden, float* h, float* c) {
  for (std::int64_t i = 0; i < 4 * hidden; ++i) gates[i] += of_state[i];
  sigmoid(table, gates, 2 * hidden);           // input, forget
  tanh(table, gates + 2 * hidden, hidden);     // cell
  sigmoid(table, gates + 3 * hidden, hidden);  // output
  for (std::int64_t i = 0; i < hidden; ++i) {
    c[i] = gates[hidden + i] * c[i] + gates[i] * gates[2 * hidden + i];
    h[i] = c[i];
  }
  tanh(table, h, hidden);
  for (std::int64_t i = 0; i < hidden; ++i) h[i] *= gates[3 * hidden + i];
}

void step_gru(const kernels::KernelTable& table, float* gates, const float* of_state, std::int64_t hidden, float* h) {
  for (std::int64_t i = 0; i < 2 * hidden; ++i) gates[i] += of_state[i];
  sigmoid(table, gates, 2 * hidden);  // reset, update
  float* const fresh = gates + 2 * hidden;
  for (std::int64_t i = 0; i < hidden; ++i) fresh[i] += gates[i] * of_state[2 * hidden + i];
  tanh(table, fresh, hidden);
  for (std::int64_t i = 0; i < hidden; ++i) {
    const float update = gates[hidden + i];
    h[i] = (1.0F - update) * fresh[i] + update * h[i];
  }
}

}  // namespace

RecurrentRun::RecurrentRun(const LayerCall& call, NetworkProducts& products)
    : call_(call), products_(products), batch_(call.inputs[0]->shape[0]), time_(call.inputs[0]->shape[1]), hidden_(call.tensors.hidden()) {
  const NetworkLayer& layer = call_.layer;
  add_result({batch_, time_, hidden_ * layer.directions()});
  for (std::int64_t i = 0; i < layer.state_count(); ++i) {
    if (call_.states.empty()) {
      add_result({layer.depth * layer.directions(), batch_, hidden_});
    } else {
      add_result(call_.states[static_cast<std::size_t>(i)]->shape);
    }
  }
  if (batch_ * time_ == 0) number_ = layer.depth * layer.directions();
}

Result<void> RecurrentRun::advance() {
  if (!make_all_room() || done()) return {};
  const std::int64_t rows = std::min(batch_ - row_, parts_of_piece(row_work(), kLeastRows));
  const std::int64_t steps = std::min(time_ - step_, parts_of_piece(rows * row_work() + kStepWork));
  compute(rows, steps);
  end_piece(rows, steps);
  return {};
}

bool RecurrentRun::done() const {
  return number_ == call_.layer.depth * call_.layer.directions() && std::ranges::all_of(results_, has_room);
}

// States that are given are copied, also a piece at a time.
bool RecurrentRun::make_all_room() {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const bool is_given = i > 0 && !call_.states.empty();
    if (!(is_given ? copy_some(*call_.states[i - 1], results_[i]) : make_room(results_[i]))) return false;
  }
  return true;
}

// Of one row in one step.
std::int64_t RecurrentRun::row_work() const {
  const kernels::PackedMatrix& inputs = of_inputs().matrix;
  return inputs.outputs * (inputs.inputs + hidden_ + kFunctionWork);
}

float* RecurrentRun::state_at(std::size_t state) { return results_[state].floats.data() + (number_ * batch_ + row_) * hidden_; }

void RecurrentRun::compute(std::int64_t rows, std::int64_t steps) {
  const std::int64_t gates = of_inputs().matrix.outputs;
  const std::int64_t width = results_.front().width();
  gather(rows, steps);
  gates_.resize(static_cast<std::size_t>(steps * rows * gates));
  state_gates_.resize(static_cast<std::size_t>(rows * gates));
  products_.multiply(of_inputs(), x_.data(), steps * rows, gates_.data());
  float* const out = results_.front().floats.data() + row_ * time_ * width + number_ % call_.layer.directions() * hidden_;
  for (std::int64_t s = 0; s < steps; ++s) take_step(rows, gates_.data() + s * rows * gates, out + time_of(step_ + s) * width);
}

// Rows of the block side by side, in the order of the steps.
void RecurrentRun::gather(std::int64_t rows, std::int64_t steps) {
  const Tensor& from = below_.floats.empty() ? *call_.inputs[0] : below_;
  const std::int64_t width = from.width();
  x_.resize(static_cast<std::size_t>(steps * rows * width));
  float* to = x_.data();
  for (std::int64_t s = 0; s < steps; ++s) {
    for (std::int64_t row = row_; row < row_ + rows; ++row)
      to = std::copy_n(from.floats.data() + (row * time_ + time_of(step_ + s)) * width, width, to);
  }
}

// `out`: of the block's first row at this time.
void RecurrentRun::take_step(std::int64_t rows, float* gates, float* out) {
  const std::int64_t width = results_.front().width();
  const std::int64_t count = of_inputs().matrix.outputs;
  products_.multiply(of_state(), state_at(1), rows, state_gates_.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const h = state_at(1) + row * hidden_;
    const float* const of_h = state_gates_.data() + row * count;
    if (call_.layer.type == LayerType::kLstm) {
      step_lstm(products_.table(), gates + row * count, of_h, hidden_, h, state_at(2) + row * hidden_);
    } else {
      step_gru(products_.table(), gates + row * count, of_h, hidden_, h);
    }
    std::copy_n(h, hidden_, out + row * time_ * width);
  }
}

void RecurrentRun::end_piece(std::int64_t rows, std::int64_t steps) {
  step_ += steps;
  if (step_ < time_) return;
  step_ = 0;
  row_ += rows;
  if (row_ < batch_) return;
  row_ = 0;
  ++number_;
  if (number_ == call_.layer.depth * call_.layer.directions() || number_ % call_.layer.directions() != 0) return;
  TensorShape shape = results_.front().shape;
  below_ = std::exchange(results_.front(), Tensor{.type = ElementType::kFloat32, .shape = std::move(shape), .floats = {}, .integers = {}});
}

}  // namespace braid::model
