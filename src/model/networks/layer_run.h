// One layer of an evaluation, computed in pieces so that other work may go between two of them. Bits do not depend on where it is cut.
#pragma once

#include "braid/result.h"
#include "braid/tensor.h"
#include "model/networks/layer_tensors.h"
#include "model/networks/network_products.h"
#include "model/networks/network_shape.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace braid::model {

struct LayerCall {
  const NetworkLayer& layer;
  const LayerTensors& tensors;
  std::span<const Tensor* const> inputs;
  std::span<const Tensor* const> states;  // before the first step; none: zeros
};

// What a piece takes, in multiplications of a product: about a millisecond of a core. Other work is weighed against these.
inline constexpr std::int64_t kPieceWork = std::int64_t{1} << 24;
inline constexpr std::int64_t kCopyWork = 8;             // of a value that is moved
inline constexpr std::int64_t kFunctionWork = 32;        // of a value's function, such as an exponential
inline constexpr std::int64_t kExactFunctionWork = 256;  // the same in float64

// Rows of a product that read its weights together: a piece has so many, if there are.
inline constexpr std::int64_t kLeastRows = 16;

// How many parts of such work a piece has.
inline std::int64_t parts_of_piece(std::int64_t work, std::int64_t least = 1) {
  return std::max(least, kPieceWork / std::max<std::int64_t>(work, 1));
}

// Gives a tensor that has a shape its values, which are zeros, a piece at a time: pages take their time, too. True: all are there.
bool make_room(Tensor& tensor);
inline bool has_room(const Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.floats.size() + tensor.integers.size()) == value_count(tensor.shape);
}

// Strand only. What a call names outlives it.
class LayerRun {
 public:
  LayerRun() = default;
  virtual ~LayerRun() = default;
  LayerRun(const LayerRun&) = delete;
  LayerRun& operator=(const LayerRun&) = delete;

  // Computes a piece. kInvalidArgument: the request's indices do not fit the layer; it is over then.
  virtual Result<void> advance() = 0;
  virtual bool done() const = 0;
  // Its output and, of kLstm and kGru, its states after the last step. After done().
  std::vector<Tensor> take_results() { return std::move(results_); }

 protected:
  // A result of this shape, without its values.
  void add_result(TensorShape shape);

  std::vector<Tensor> results_;
};

// kInvalidArgument: the request's sizes do not fit the layer.
Result<std::unique_ptr<LayerRun>> begin_layer(const LayerCall& call, NetworkProducts& products);

}  // namespace braid::model
