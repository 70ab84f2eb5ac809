#include "model/networks/layer_functions.h"

#include "model/networks/activations.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

Error wrong(const NetworkLayer& layer, std::string_view what) {
  return invalid_argument(fmt::format("the layer '{}' cannot take this request's inputs: {}", layer.name, what), "inputs");
}

std::int64_t product(TensorShape::const_iterator begin, TensorShape::const_iterator end) { return value_count({begin, end}); }

Result<void> compute_linear(const LayerCall& call, NetworkProducts& products, PartRange rows, Tensor& out) {
  const Tensor& x = *call.inputs[0];
  const LayerMatrix& matrix = call.tensors.matrices[0];
  products.multiply(matrix, x.floats.data() + rows.begin * x.width(), rows.end - rows.begin, out.floats.data() + rows.begin * out.width());
  return {};
}

// What a piece of a convolution keeps: its windows as rows of a product, and what becomes of them.
struct Windows {
  std::vector<float> rows;
  std::vector<float> results;
};

// Positions of one group of one row of the batch.
void convolve(const LayerCall& call, NetworkProducts& products, std::int64_t plane, PartRange positions, Windows& windows, Tensor& out) {
  const NetworkLayer& layer = call.layer;
  const Tensor& x = *call.inputs[0];
  const std::int64_t kernel = call.tensors.kernel;
  const std::int64_t time = x.shape[2];
  const LayerMatrix& matrix = call.tensors.matrices[static_cast<std::size_t>(plane % layer.groups)];
  const auto& [inputs, outputs] = std::pair(matrix.matrix.inputs, matrix.matrix.outputs);
  const std::int64_t channels = inputs / kernel;  // of a group
  const float* const from = x.floats.data() + plane * channels * time;
  const std::int64_t count = positions.end - positions.begin;
  windows.rows.resize(static_cast<std::size_t>(count * inputs));
  windows.results.resize(static_cast<std::size_t>(count * outputs));
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t k = 0; k < kernel; ++k) {
        const std::int64_t t = (positions.begin + p) * layer.stride + k * layer.dilation - layer.padding;
        windows.rows[static_cast<std::size_t>(p * inputs + c * kernel + k)] = t < 0 || t >= time ? 0.0F : from[c * time + t];
      }
    }
  }
  products.multiply(matrix, windows.rows.data(), count, windows.results.data());
  float* const to = out.floats.data() + plane * outputs * out.shape[2] + positions.begin;
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t o = 0; o < outputs; ++o) to[o * out.shape[2] + p] = windows.results[static_cast<std::size_t>(p * outputs + o)];
  }
}

// A part is a position of a plane; planes are the batch's rows, in each its groups.
Result<void> compute_conv1d(const LayerCall& call, NetworkProducts& products, PartRange parts, Tensor& out) {
  const std::int64_t positions = out.shape[2];
  Windows windows;
  while (parts.begin < parts.end) {
    const std::int64_t first = parts.begin % positions;
    const std::int64_t last = std::min(positions, first + parts.end - parts.begin);
    convolve(call, products, parts.begin / positions, {first, last}, windows, out);
    parts.begin += last - first;
  }
  return {};
}

Result<void> compute_embedding(const LayerCall& call, NetworkProducts&, PartRange indices, Tensor& out) {
  const std::int64_t width = call.tensors.width;
  for (std::int64_t i = indices.begin; i < indices.end; ++i) {
    const std::int64_t entry = call.inputs[0]->integers[static_cast<std::size_t>(i)];
    if (entry < 0 || entry >= call.tensors.entries)
      return wrong(call.layer, fmt::format("{} is no index of its table of {} entries", entry, call.tensors.entries));
    std::copy_n(call.tensors.table.begin() + entry * width, width, out.floats.begin() + i * width);
  }
  return {};
}

Result<void> compute_layer_norm(const LayerCall& call, NetworkProducts& products, PartRange rows, Tensor& out) {
  const Tensor& x = *call.inputs[0];
  const std::int64_t width = x.width();
  const std::vector<float> ones(call.tensors.scale.empty() ? static_cast<std::size_t>(width) : 0, 1.0F);
  const std::vector<float> zeros(ones.size(), 0.0F);
  const float* const scale = ones.empty() ? call.tensors.scale.data() : ones.data();
  const float* const shift = ones.empty() ? call.tensors.shift.data() : zeros.data();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    products.table().layer_norm(x.floats.data() + row * width, scale, shift, width, static_cast<float>(call.layer.epsilon),
                                out.floats.data() + row * width);
  }
  return {};
}

Result<void> compute_activation(const LayerCall& call, NetworkProducts& products, PartRange values, Tensor& out) {
  const kernels::KernelTable& table = products.table();
  const std::int64_t n = values.end - values.begin;
  float* const x = out.floats.data() + values.begin;
  std::copy_n(call.inputs[0]->floats.data() + values.begin, n, x);
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
    default:
      std::abort();  // no such activation
  }
  return {};
}

Result<void> compute_add(const LayerCall& call, NetworkProducts&, PartRange values, Tensor& out) {
  std::copy_n(call.inputs[0]->floats.data() + values.begin, values.end - values.begin, out.floats.data() + values.begin);
  for (const Tensor* other : call.inputs.subspan(1)) {
    for (auto i = static_cast<std::size_t>(values.begin); i < static_cast<std::size_t>(values.end); ++i) out.floats[i] += other->floats[i];
  }
  return {};
}

// Values of the output: for each index before the axis, what each input has there.
Result<void> compute_concat(const LayerCall& call, NetworkProducts&, PartRange values, Tensor& out) {
  const std::size_t axis = axis_of(call.layer, out.shape);
  const std::int64_t inner = product(out.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, out.shape.end());
  const std::int64_t row = out.shape[axis] * inner;
  for (std::int64_t outer = values.begin / row; outer * row < values.end; ++outer) {
    std::int64_t at = outer * row;
    for (const Tensor* part : call.inputs) {
      const std::int64_t run = part->shape[axis] * inner;
      const std::int64_t begin = std::max(at, values.begin);
      const std::int64_t end = std::min(at + run, values.end);
      if (begin < end) std::copy_n(part->floats.data() + outer * run + begin - at, end - begin, out.floats.data() + begin);
      at += run;
    }
  }
  return {};
}

Result<void> compute_last(const LayerCall& call, NetworkProducts&, PartRange rows, Tensor& out) {
  const Tensor& x = *call.inputs[0];
  const std::int64_t time = *(x.shape.end() - 2);
  const std::int64_t width = x.width();
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    std::copy_n(x.floats.data() + ((row + 1) * time - 1) * width, width, out.floats.data() + row * width);
  return {};
}

Result<void> compute_parameter(const LayerCall& call, NetworkProducts&, PartRange rows, Tensor& out) {
  const std::vector<float>& values = call.tensors.table;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) std::ranges::copy(values, out.floats.data() + row * call.tensors.width);
  return {};
}

}  // namespace

Result<LayerParts> linear_parts(const LayerCall& call) {
  const Tensor& x = *call.inputs[0];
  const kernels::PackedMatrix& matrix = call.tensors.matrices[0].matrix;
  TensorShape shape = x.shape;
  shape.back() = matrix.outputs;
  return LayerParts{std::move(shape), x.rows(), parts_of_piece(matrix.inputs * matrix.outputs, kLeastRows), compute_linear};
}

// [batch, channels, time]
Result<LayerParts> conv1d_parts(const LayerCall& call) {
  const Tensor& x = *call.inputs[0];
  const NetworkLayer& layer = call.layer;
  const std::int64_t time = x.shape[2];
  const std::int64_t room = time + 2 * layer.padding - ((call.tensors.kernel - 1) * layer.dilation + 1);
  if (room < 0) return wrong(layer, fmt::format("{} positions, padded {}, are fewer than its weight spans", time, layer.padding));
  const std::int64_t positions = room / layer.stride + 1;
  const kernels::PackedMatrix& first = call.tensors.matrices[0].matrix;
  const std::int64_t of_piece = parts_of_piece(first.inputs * (first.outputs + kCopyWork), kLeastRows);
  return LayerParts{{x.shape[0], first.outputs * layer.groups, positions}, x.shape[0] * layer.groups * positions, of_piece, compute_conv1d};
}

Result<LayerParts> embedding_parts(const LayerCall& call) {
  TensorShape shape = call.inputs[0]->shape;
  const std::int64_t count = value_count(shape);
  shape.push_back(call.tensors.width);
  return LayerParts{std::move(shape), count, parts_of_piece(call.tensors.width * kCopyWork), compute_embedding};
}

Result<LayerParts> layer_norm_parts(const LayerCall& call) {
  const Tensor& x = *call.inputs[0];
  return LayerParts{x.shape, x.rows(), parts_of_piece(x.width() * kFunctionWork), compute_layer_norm};
}

Result<LayerParts> activation_parts(const LayerCall& call) {
  const TensorShape& shape = call.inputs[0]->shape;
  const std::int64_t work = call.layer.type == LayerType::kSoftplus ? kExactFunctionWork : kFunctionWork;
  return LayerParts{shape, value_count(shape), parts_of_piece(work), compute_activation};
}

Result<LayerParts> add_parts(const LayerCall& call) {
  const TensorShape& shape = call.inputs[0]->shape;
  for (const Tensor* other : call.inputs.subspan(1)) {
    if (other->shape != shape)
      return wrong(call.layer, fmt::format("it adds the shapes [{}] and [{}]", fmt::join(shape, ", "), fmt::join(other->shape, ", ")));
  }
  const auto terms = static_cast<std::int64_t>(call.inputs.size());
  return LayerParts{shape, value_count(shape), parts_of_piece(terms * kCopyWork), compute_add};
}

Result<LayerParts> concat_parts(const LayerCall& call) {
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
  const std::int64_t count = value_count(shape);
  return LayerParts{std::move(shape), count, parts_of_piece(kCopyWork), compute_concat};
}

Result<LayerParts> parameter_parts(const LayerCall& call) {
  const std::int64_t width = call.tensors.width;
  TensorShape shape = call.inputs[0]->shape;
  shape.back() = width;
  return LayerParts{std::move(shape), call.inputs[0]->rows(), parts_of_piece(width * kCopyWork), compute_parameter};
}

Result<LayerParts> last_parts(const LayerCall& call) {
  TensorShape shape = call.inputs[0]->shape;
  shape.erase(shape.end() - 2);
  const std::int64_t width = shape.back();
  const std::int64_t rows = value_count(shape) / std::max<std::int64_t>(width, 1);
  return LayerParts{std::move(shape), rows, parts_of_piece(width * kCopyWork), compute_last};
}

}  // namespace braid::model
