#include "model/networks/layer_functions.h"

#include "model/networks/activations.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace braid::model {
namespace {

Tensor floats(TensorShape shape) { return Tensor::zeros(ElementType::kFloat32, std::move(shape)); }

Error wrong(const NetworkLayer& layer, std::string_view what) {
  return invalid_argument(fmt::format("the layer '{}' cannot take this request's inputs: {}", layer.name, what), "inputs");
}

std::size_t axis_of(const NetworkLayer& layer, const TensorShape& shape) {
  return static_cast<std::size_t>(layer.axis < 0 ? layer.axis + static_cast<std::int64_t>(shape.size()) : layer.axis);
}

std::int64_t product(TensorShape::const_iterator begin, TensorShape::const_iterator end) { return value_count({begin, end}); }

// Softmax or its logarithm along the layer's axis.
void normalise(const NetworkLayer& layer, Tensor& x) {
  const std::size_t axis = axis_of(layer, x.shape);
  const auto at = x.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = product(x.shape.begin(), at);
  const std::int64_t inner = product(at + 1, x.shape.end());
  const auto function = layer.type == LayerType::kSoftmax ? softmax : log_softmax;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) function(x.floats.data() + o * *at * inner + i, *at, inner);
  }
}

}  // namespace

Result<Tensor> run_linear(const LayerCall& call, NetworkProducts& products) {
  const Tensor& x = *call.inputs[0];
  const LayerMatrix& matrix = call.tensors.matrices[0];
  TensorShape shape = x.shape;
  shape.back() = matrix.matrix.outputs;
  Tensor out = floats(std::move(shape));
  products.multiply(matrix, x.floats.data(), x.rows(), out.floats.data());
  return out;
}

// [batch, channels, time]: each position's window of a group is a row of a product.
Result<Tensor> run_conv1d(const LayerCall& call, NetworkProducts& products) {
  const Tensor& x = *call.inputs[0];
  const NetworkLayer& layer = call.layer;
  const std::int64_t kernel = call.tensors.kernel;
  const std::int64_t time = x.shape[2];
  const std::int64_t room = time + 2 * layer.padding - ((kernel - 1) * layer.dilation + 1);
  if (room < 0) return wrong(layer, fmt::format("{} positions, padded {}, are fewer than its weight spans", time, layer.padding));
  const std::int64_t positions = room / layer.stride + 1;
  const kernels::PackedMatrix& first = call.tensors.matrices[0].matrix;
  const std::int64_t channels = first.inputs / kernel;  // of a group
  Tensor out = floats({x.shape[0], first.outputs * layer.groups, positions});
  std::vector<float> windows(static_cast<std::size_t>(positions * first.inputs));
  std::vector<float> results(static_cast<std::size_t>(positions * first.outputs));
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    for (std::int64_t g = 0; g < layer.groups; ++g) {
      const float* const group = x.floats.data() + (b * x.shape[1] + g * channels) * time;
      for (std::int64_t p = 0; p < positions; ++p) {
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t k = 0; k < kernel; ++k) {
            const std::int64_t t = p * layer.stride + k * layer.dilation - layer.padding;
            windows[static_cast<std::size_t>(p * first.inputs + c * kernel + k)] = t < 0 || t >= time ? 0.0F : group[c * time + t];
          }
        }
      }
      products.multiply(call.tensors.matrices[static_cast<std::size_t>(g)], windows.data(), positions, results.data());
      float* const to = out.floats.data() + (b * out.shape[1] + g * first.outputs) * positions;
      for (std::int64_t p = 0; p < positions; ++p) {
        for (std::int64_t o = 0; o < first.outputs; ++o) to[o * positions + p] = results[static_cast<std::size_t>(p * first.outputs + o)];
      }
    }
  }
  return out;
}

Result<Tensor> run_embedding(const LayerCall& call) {
  const Tensor& x = *call.inputs[0];
  const std::int64_t width = call.tensors.width;
  TensorShape shape = x.shape;
  shape.push_back(width);
  Tensor out = floats(std::move(shape));
  for (std::size_t i = 0; i < x.integers.size(); ++i) {
    const std::int64_t entry = x.integers[i];
    if (entry < 0 || entry >= call.tensors.entries)
      return wrong(call.layer, fmt::format("{} is no index of its table of {} entries", entry, call.tensors.entries));
    std::copy_n(call.tensors.table.begin() + entry * width, width, out.floats.begin() + static_cast<std::ptrdiff_t>(i) * width);
  }
  return out;
}

Result<Tensor> run_layer_norm(const LayerCall& call, const kernels::KernelTable& table) {
  const Tensor& x = *call.inputs[0];
  const std::int64_t width = x.width();
  const std::vector<float> ones(call.tensors.scale.empty() ? static_cast<std::size_t>(width) : 0, 1.0F);
  const std::vector<float> zeros(ones.size(), 0.0F);
  const float* const scale = ones.empty() ? call.tensors.scale.data() : ones.data();
  const float* const shift = ones.empty() ? call.tensors.shift.data() : zeros.data();
  Tensor out = floats(x.shape);
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    table.layer_norm(x.floats.data() + row * width, scale, shift, width, static_cast<float>(call.layer.epsilon),
                     out.floats.data() + row * width);
  }
  return out;
}

Result<Tensor> run_activation(const LayerCall& call, const kernels::KernelTable& table) {
  Tensor out = *call.inputs[0];
  float* const x = out.floats.data();
  const auto n = static_cast<std::int64_t>(out.floats.size());
  switch (call.layer.type) {
    case LayerType::kRelu:
      relu(x, n);
      break;
    case LayerType::kTanh:
      tanh(table, x, n);
      break;
    case LayerType::kSigmoid:
      sigmoid(table, x, n);
      break;
    case LayerType::kGelu:
      call.layer.by_tanh ? table.gelu(x, n, x) : gelu(table, x, n);
      break;
    case LayerType::kSilu:
      silu(table, x, n);
      break;
    case LayerType::kSoftplus:
      softplus(x, n);
      break;
    case LayerType::kSoftmax:
    case LayerType::kLogSoftmax:
      normalise(call.layer, out);
      break;
    case LayerType::kLinear:
    case LayerType::kLayerNorm:
    case LayerType::kEmbedding:
    case LayerType::kConv1d:
    case LayerType::kLstm:
    case LayerType::kGru:
    case LayerType::kAdd:
    case LayerType::kConcat:
    case LayerType::kLast:
      std::abort();  // no activations
  }
  return out;
}

Result<Tensor> run_add(const LayerCall& call) {
  Tensor out = *call.inputs[0];
  for (const Tensor* other : call.inputs.subspan(1)) {
    if (other->shape != out.shape)
      return wrong(call.layer, fmt::format("it adds the shapes [{}] and [{}]", fmt::join(out.shape, ", "), fmt::join(other->shape, ", ")));
    for (std::size_t i = 0; i < out.floats.size(); ++i) out.floats[i] += other->floats[i];
  }
  return out;
}

Result<Tensor> run_concat(const LayerCall& call) {
  TensorShape shape = call.inputs[0]->shape;
  const std::size_t axis = axis_of(call.layer, shape);
  for (const Tensor* other : call.inputs.subspan(1)) {
    TensorShape same = other->shape;
    same[axis] = call.inputs[0]->shape[axis];
    if (same != call.inputs[0]->shape)
      return wrong(call.layer,
                   fmt::format("it joins the shapes [{}] and [{}]", fmt::join(call.inputs[0]->shape, ", "), fmt::join(other->shape, ", ")));
    shape[axis] += other->shape[axis];
  }
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = product(shape.begin(), shape.begin() + at);
  const std::int64_t inner = product(shape.begin() + at + 1, shape.end());
  Tensor out = floats(shape);
  float* to = out.floats.data();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Tensor* part : call.inputs) {
      const std::int64_t run = part->shape[axis] * inner;
      to = std::copy_n(part->floats.data() + o * run, run, to);
    }
  }
  return out;
}

Result<Tensor> run_last(const LayerCall& call) {
  const Tensor& x = *call.inputs[0];
  TensorShape shape = x.shape;
  const std::int64_t time = *(shape.end() - 2);
  shape.erase(shape.end() - 2);
  Tensor out = floats(std::move(shape));
  const std::int64_t width = x.width();
  for (std::int64_t row = 0; row < out.rows(); ++row) {
    std::copy_n(x.floats.data() + ((row + 1) * time - 1) * width, width, out.floats.data() + row * width);
  }
  return out;
}

}  // namespace braid::model
