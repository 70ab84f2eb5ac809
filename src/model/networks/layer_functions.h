// What the layers of a small network compute. Shapes have been checked (value_shapes.h) but for what only a request tells.
#pragma once

#include "braid/result.h"
#include "braid/tensor.h"
#include "model/networks/network_products.h"
#include "model/networks/network_shape.h"

#include <span>
#include <vector>

namespace braid::model {

struct LayerCall {
  const NetworkLayer& layer;
  const LayerTensors& tensors;
  std::span<const Tensor* const> inputs;
  std::span<const Tensor* const> states;  // before the first step; none: zeros
};

// Of kLstm (h and c) and kGru (one) their states [depth * directions, batch, hidden] follow the output [batch, time, directions * hidden].
std::vector<Tensor> run_recurrent(const LayerCall& call, NetworkProducts& products);

Result<Tensor> run_linear(const LayerCall& call, NetworkProducts& products);
Result<Tensor> run_conv1d(const LayerCall& call, NetworkProducts& products);  // kInvalidArgument: its input is too short
Result<Tensor> run_embedding(const LayerCall& call);                          // kInvalidArgument: an index beyond the table
Result<Tensor> run_layer_norm(const LayerCall& call, const kernels::KernelTable& table);
Result<Tensor> run_activation(const LayerCall& call, const kernels::KernelTable& table);  // also softmax and its logarithm
Result<Tensor> run_add(const LayerCall& call);                                            // kInvalidArgument: shapes differ in this request
Result<Tensor> run_concat(const LayerCall& call);                                         // kInvalidArgument: likewise
Result<Tensor> run_last(const LayerCall& call);

}  // namespace braid::model
