// LSTM (Hochreiter and Schmidhuber, 1997) and GRU (Cho et al., 2014), with torch's gates, order and biases.
#include "model/networks/activations.h"
#include "model/networks/layer_functions.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace braid::model {
namespace {

// One level in one direction.
struct Direction {
  const LayerMatrix& of_inputs;
  const LayerMatrix& of_state;
  bool lstm = false;
  bool backward = false;
};

// [batch, time, width]
struct Sequence {
  const float* values = nullptr;
  std::int64_t batch = 0;
  std::int64_t time = 0;
};

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

// h and c [batch, hidden] are the states, before and then after; out[batch, time, out_width] gets this direction's part at `offset`.
void run_direction(const Direction& direction, const Sequence& x, NetworkProducts& products, float* h, float* c, float* out,
                   std::int64_t out_width, std::int64_t offset) {
  const std::int64_t hidden = direction.of_state.matrix.inputs;
  const std::int64_t gates = direction.of_state.matrix.outputs;
  std::vector<float> of_inputs(static_cast<std::size_t>(x.batch * x.time * gates));
  std::vector<float> of_state(static_cast<std::size_t>(x.batch * gates));
  products.multiply(direction.of_inputs, x.values, x.batch * x.time, of_inputs.data());
  for (std::int64_t step = 0; step < x.time; ++step) {
    const std::int64_t t = direction.backward ? x.time - 1 - step : step;
    products.multiply(direction.of_state, h, x.batch, of_state.data());
    for (std::int64_t b = 0; b < x.batch; ++b) {
      float* const row = of_inputs.data() + (b * x.time + t) * gates;
      float* const state = h + b * hidden;
      if (direction.lstm) {
        step_lstm(products.table(), row, of_state.data() + b * gates, hidden, state, c + b * hidden);
      } else {
        step_gru(products.table(), row, of_state.data() + b * gates, hidden, state);
      }
      std::copy_n(state, hidden, out + (b * x.time + t) * out_width + offset);
    }
  }
}

}  // namespace

std::vector<Tensor> run_recurrent(const LayerCall& call, NetworkProducts& products) {
  const NetworkLayer& layer = call.layer;
  const Tensor& input = *call.inputs[0];
  const std::int64_t batch = input.shape[0];
  const std::int64_t time = input.shape[1];
  const std::int64_t hidden = call.tensors.hidden();
  const std::int64_t width = hidden * layer.directions();
  std::vector<Tensor> results(1);
  for (std::int64_t i = 0; i < layer.state_count(); ++i) {
    if (call.states.empty()) {
      results.push_back(Tensor::zeros(ElementType::kFloat32, {layer.depth * layer.directions(), batch, hidden}));
    } else {
      results.push_back(*call.states[static_cast<std::size_t>(i)]);
    }
  }
  const float* values = input.floats.data();
  for (std::int64_t level = 0; level < layer.depth; ++level) {
    Tensor out = Tensor::zeros(ElementType::kFloat32, {batch, time, width});
    for (std::int64_t d = 0; d < layer.directions(); ++d) {
      const std::int64_t number = level * layer.directions() + d;
      const auto matrix = static_cast<std::size_t>(number * 2);
      const Direction direction{.of_inputs = call.tensors.matrices[matrix],
                                .of_state = call.tensors.matrices[matrix + 1],
                                .lstm = layer.type == LayerType::kLstm,
                                .backward = d == 1};
      const auto state_of = [&](std::size_t state) { return results[state].floats.data() + number * batch * hidden; };
      run_direction(direction, {values, batch, time}, products, state_of(1), direction.lstm ? state_of(2) : nullptr, out.floats.data(),
                    width, d * hidden);
    }
    results[0] = std::move(out);
    values = results[0].floats.data();
  }
  return results;
}

}  // namespace braid::model
