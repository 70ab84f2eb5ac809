// Requests to one network that are evaluated as one: their rows lie one behind the other, so that weights are read once for all.
#pragma once

#include "braid/tensor.h"
#include "model/networks/network_shape.h"
#include "model/networks/value_shapes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Of each value, by its id, the dimension along which rows do not see each other; empty: the network has none.
std::vector<std::size_t> batch_axes(const NetworkShape& shape, const std::vector<ValueShape>& values);

// Whether the inputs of two requests are equal in all sizes but that of the batch. `axes`: those of the inputs come first.
bool may_join(std::span<const Tensor> one, std::span<const Tensor> other, std::span<const std::size_t> axes);

// The parts, of one type, one behind the other along the axis; and a tensor in parts of these sizes again.
Tensor join(std::span<const Tensor* const> parts, std::size_t axis);
std::vector<Tensor> split(const Tensor& whole, std::size_t axis, std::span<const std::int64_t> sizes);

}  // namespace braid::model
