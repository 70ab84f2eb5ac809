#include "model/networks/batching.h"

#include <algorithm>
#include <optional>
#include <string>

namespace braid::model {
namespace {

// Of the dimensions before and behind an axis.
std::int64_t values_before(const TensorShape& shape, std::size_t axis) {
  return value_count({shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)});
}
std::int64_t values_behind(const TensorShape& shape, std::size_t axis) {
  return value_count({shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end()});
}

// Where `name` stands, if it does so once.
std::optional<std::size_t> only_place(const SymbolicShape& shape, const std::string& name) {
  const auto is_it = [&name](const Extent& extent) { return extent.size < 0 && extent.name == name; };
  if (std::ranges::count_if(shape, is_it) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find_if(shape, is_it) - shape.begin());
}

// The dimension of a layer's output that its inputs' dimension becomes; nothing where rows along it see each other.
std::optional<std::size_t> axis_behind(const NetworkLayer& layer, std::size_t rank, std::size_t axis) {
  const std::size_t own = static_cast<std::size_t>(layer.axis < 0 ? layer.axis + static_cast<std::int64_t>(rank) : layer.axis);
  bool apart = true;
  switch (layer.type) {
    case LayerType::kLinear:
    case LayerType::kLayerNorm:
    case LayerType::kParameter:
      apart = axis + 1 < rank;
      break;
    case LayerType::kConv1d:
    case LayerType::kLstm:
    case LayerType::kGru:
      apart = axis == 0;
      break;
    case LayerType::kSoftmax:
    case LayerType::kLogSoftmax:
    case LayerType::kConcat:
      apart = axis != own;
      break;
    case LayerType::kLast:
      apart = axis + 2 < rank;
      break;
    case LayerType::kEmbedding:
    case LayerType::kRelu:
    case LayerType::kTanh:
    case LayerType::kSigmoid:
    case LayerType::kGelu:
    case LayerType::kSilu:
    case LayerType::kSoftplus:
    case LayerType::kAdd:
      break;
  }
  return apart ? std::optional(axis) : std::nullopt;
}

}  // namespace

std::vector<std::size_t> batch_axes(const NetworkShape& shape, const std::vector<ValueShape>& values) {
  constexpr std::size_t kStateAxis = 1;  // [layers, batch, width]
  std::vector<std::size_t> axes(values.size());
  if (shape.inputs.empty() || shape.inputs.front().shape.empty() || shape.inputs.front().shape.front().size >= 0) return {};
  const std::string& name = shape.inputs.front().shape.front().name;
  for (std::size_t i = 0; i < shape.inputs.size(); ++i) {
    const auto place = only_place(shape.inputs[i].shape, name);
    if (!place) return {};
    axes[i] = *place;
  }
  for (const NetworkLayer& layer : shape.layers) {
    const auto axis_of = [&axes](ValueId id) { return axes[static_cast<std::size_t>(id)]; };
    const std::size_t axis = axis_of(layer.inputs.front());
    const auto behind = axis_behind(layer, values[static_cast<std::size_t>(layer.inputs.front())].shape.size(), axis);
    const bool alike = std::ranges::all_of(layer.inputs, [&](ValueId id) { return axis_of(id) == axis; });
    const bool states = std::ranges::all_of(layer.states, [&](ValueId id) { return axis_of(id) == kStateAxis; });
    if (!behind || !alike || !states) return {};
    axes[static_cast<std::size_t>(layer.output)] = *behind;
    for (std::int64_t i = 1; i <= layer.state_count(); ++i) axes[static_cast<std::size_t>(layer.output + i)] = kStateAxis;
  }
  return axes;
}

bool may_join(std::span<const Tensor> one, std::span<const Tensor> other, std::span<const std::size_t> axes) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    TensorShape alike = other[i].shape;
    alike[axes[i]] = one[i].shape[axes[i]];
    if (alike != one[i].shape) return false;
  }
  return true;
}

Tensor join(std::span<const Tensor* const> parts, std::size_t axis) {
  TensorShape shape = parts.front()->shape;
  shape[axis] = 0;
  for (const Tensor* part : parts) shape[axis] += part->shape[axis];
  const std::int64_t before = values_before(shape, axis);
  const std::int64_t behind = values_behind(shape, axis);
  Tensor whole{.type = parts.front()->type, .shape = std::move(shape), .floats = {}, .integers = {}};
  for (std::int64_t outer = 0; outer < before; ++outer) {
    for (const Tensor* part : parts) {
      const std::int64_t run = part->shape[axis] * behind;
      const auto append = [&](auto& to, const auto& from) {
        if (!from.empty()) to.insert(to.end(), from.begin() + outer * run, from.begin() + (outer + 1) * run);
      };
      append(whole.floats, part->floats);
      append(whole.integers, part->integers);
    }
  }
  return whole;
}

std::vector<Tensor> split(const Tensor& whole, std::size_t axis, std::span<const std::int64_t> sizes) {
  const std::int64_t before = values_before(whole.shape, axis);
  const std::int64_t behind = values_behind(whole.shape, axis);
  std::vector<Tensor> parts;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    Tensor& part = parts.emplace_back(Tensor{.type = whole.type, .shape = whole.shape, .floats = {}, .integers = {}});
    part.shape[axis] = size;
    for (std::int64_t outer = 0; outer < before; ++outer) {
      const std::int64_t begin = (outer * whole.shape[axis] + first) * behind;
      const auto append = [&](auto& to, const auto& from) {
        if (!from.empty()) to.insert(to.end(), from.begin() + begin, from.begin() + begin + size * behind);
      };
      append(part.floats, whole.floats);
      append(part.integers, whole.integers);
    }
    first += size;
  }
  return parts;
}

}  // namespace braid::model
