// A small network: what policies, value functions, rewards and other little models are made of (`/v1/predict`).
#pragma once

#include "braid/result.h"
#include "files/safetensors.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/networks/layer_run.h"
#include "model/networks/layer_tensors.h"
#include "model/networks/network_products.h"
#include "model/networks/network_shape.h"
#include "model/networks/value_shapes.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace braid::model {

// Immutable after loading: any thread may ask, and a NetworkRun computes on the strand.
class Network {
 public:
  // `config` is the text of config.json; `file` holds the tensors, and is not needed afterwards. `type`: what matrices are computed in where
  // its blocks divide their inputs, float32 otherwise. kBadFile or kUnsupported, with the path.
  static Result<Network> load(std::string_view config, const files::SafeTensors& file, const kernels::KernelTable& table,
                              kernels::WeightType type = kernels::WeightType::kF32);

  const NetworkShape& shape() const { return shape_; }
  const std::vector<LayerTensors>& tensors() const { return tensors_; }
  const ValueShape& value_shape(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  const kernels::KernelTable& table() const { return *table_; }
  // As batch_axes() gives them.
  const std::vector<std::size_t>& batch_axes() const { return batch_axes_; }

  // Adds what is optional, zeros; many of those are left to the run. kInvalidArgument: an input is missing, or its type or shape is not the declared one, or one size has two
  // values; the path is "inputs.NAME". By the order of the shape's inputs.
  Result<std::vector<Tensor>> complete(std::vector<std::optional<Tensor>> inputs) const;

 private:
  Network() = default;

  NetworkShape shape_;
  std::vector<LayerTensors> tensors_;  // of each layer
  std::vector<ValueShape> values_;
  std::vector<std::size_t> batch_axes_;
  const kernels::KernelTable* table_ = nullptr;
};

// One evaluation, in pieces of about a millisecond, so that other work may go between two of them. A row of the batch gets the same bits
// alone and among others. Strand only.
class NetworkRun {
 public:
  // `inputs` as complete() gives them; `outputs` are places in the shape's outputs. Layers that none of these needs are left out. `network`
  // and `team` outlive the run.
  NetworkRun(const Network& network, std::vector<Tensor> inputs, std::vector<std::size_t> outputs, kernels::ThreadTeam& team);
  NetworkRun(const NetworkRun&) = delete;
  NetworkRun& operator=(const NetworkRun&) = delete;

  bool done() const { return filled_ == network_.shape().inputs.size() && is_behind_last(); }
  // Computes a piece of a layer, if the layer is small all of it. kInvalidArgument: the request's sizes or indices do not fit it; the run is
  // over then.
  Result<void> advance();
  // In the order of `outputs`, after done(), once.
  std::vector<Tensor> take_outputs();

  // Numbers of the values that are kept between two pieces: those that a layer to come reads, or that are wanted.
  std::size_t kept_values() const;

 private:
  Result<void> check_wanted() const;
  bool is_behind_last() const { return next_ == network_.shape().layers.size(); }
  bool fill_inputs();
  Result<void> begin();
  void end();
  void skip_unneeded();

  const Network& network_;
  std::vector<Tensor> values_;                           // by id
  std::vector<std::optional<std::size_t>> last_reader_;  // by id: a layer, or the one behind the last for what is wanted; null: nobody
  std::vector<std::size_t> outputs_;
  std::vector<bool> needed_;  // layers
  std::size_t filled_ = 0;    // inputs
  std::size_t next_ = 0;
  NetworkProducts products_;
  std::vector<const Tensor*> layer_inputs_;  // of the layer that has begun
  std::vector<const Tensor*> layer_states_;
  std::unique_ptr<LayerRun> layer_;
};

}  // namespace braid::model
