#include "model/networks/network.h"

#include "model/networks/batching.h"
#include "model/networks/layer_functions.h"
#include "model/networks/policy_config.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <string>
#include <utility>

namespace braid::model {
namespace {

// Whether a value is the layer's output or one of its states.
bool gives(const NetworkLayer& layer, ValueId value) { return value >= layer.output && value <= layer.output + layer.state_count(); }

// A value of a layer: what a small body of many short rows must not make large without end.
constexpr std::int64_t kMostValues = std::int64_t{1} << 28;

// The product, or kMostValues + 1 where it is more.
std::int64_t bounded_count(const TensorShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent > 0 && count > kMostValues / extent) return kMostValues + 1;
    count *= extent;
  }
  return count;
}

// The most values that a layer makes at once.
std::int64_t values_of(const LayerCall& call) {
  TensorShape shape = call.inputs[0]->shape;
  switch (call.layer.type) {
    case LayerType::kLinear:
      shape.back() = call.tensors.matrices[0].matrix.outputs;
      break;
    case LayerType::kEmbedding:
      shape.push_back(call.tensors.width);
      break;
    case LayerType::kConv1d: {  // its windows, its output
      const std::int64_t positions = shape[2] + 2 * std::min(call.layer.padding, kMostValues);
      const kernels::PackedMatrix& matrix = call.tensors.matrices[0].matrix;
      return std::max(bounded_count({positions, matrix.inputs}), bounded_count({shape[0], positions, matrix.outputs, call.layer.groups}));
    }
    case LayerType::kLstm:
    case LayerType::kGru:
      shape.back() = std::max(call.tensors.matrices[1].matrix.outputs, call.tensors.hidden() * call.layer.directions());
      break;
    default:
      break;
  }
  return bounded_count(shape);
}

Error too_large(std::string_view what, const std::string& name) {
  return invalid_argument(fmt::format("{} '{}' would have more than {} values: ask for fewer rows at once", what, name, kMostValues),
                          "inputs");
}

Result<Tensor> run_layer(const LayerCall& call, NetworkProducts& products) {
  switch (call.layer.type) {
    case LayerType::kLinear:
      return run_linear(call, products);
    case LayerType::kLayerNorm:
      return run_layer_norm(call, products.table());
    case LayerType::kEmbedding:
      return run_embedding(call);
    case LayerType::kConv1d:
      return run_conv1d(call, products);
    case LayerType::kAdd:
      return run_add(call);
    case LayerType::kConcat:
      return run_concat(call);
    case LayerType::kLast:
      return run_last(call);
    case LayerType::kRelu:
    case LayerType::kTanh:
    case LayerType::kSigmoid:
    case LayerType::kGelu:
    case LayerType::kSilu:
    case LayerType::kSoftplus:
    case LayerType::kSoftmax:
    case LayerType::kLogSoftmax:
      return run_activation(call, products.table());
    case LayerType::kLstm:
    case LayerType::kGru:
      break;  // run_recurrent
  }
  std::abort();
}

// The sizes that a request has chosen, by their names.
class Sizes {
 public:
  bool fits(const Extent& declared, std::int64_t size) {
    if (declared.size >= 0) return size == declared.size;
    return size >= 1 && sizes_.emplace(declared.name, size).first->second == size;
  }
  std::optional<std::int64_t> of(const Extent& declared) const {
    if (declared.size >= 0) return declared.size;
    const auto found = sizes_.find(declared.name);
    return found == sizes_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string text(const SymbolicShape& shape) const {
    std::vector<std::string> extents;
    for (const Extent& extent : shape) {
      const auto size = of(extent);
      extents.push_back(!size ? extent.name : extent.size >= 0 ? fmt::format("{}", *size) : fmt::format("{}={}", extent.name, *size));
    }
    return fmt::format("[{}]", fmt::join(extents, ", "));
  }

 private:
  std::map<std::string, std::int64_t> sizes_;
};

}  // namespace

Result<Network> Network::load(std::string_view config, const files::SafeTensors& file, const kernels::KernelTable& table,
                              kernels::WeightType type) {
  auto shape = read_network_shape(config);
  if (!shape) return shape.error();
  Network network;
  network.table_ = &table;
  network.shape_ = std::move(*shape);
  for (std::size_t i = 0; i < network.shape_.layers.size(); ++i) {
    auto tensors = load_layer_tensors(network.shape_.layers[i], file, table, type, fmt::format("layers[{}]", i));
    if (!tensors) return tensors.error();
    network.tensors_.push_back(std::move(*tensors));
  }
  auto values = infer_shapes(network.shape_, network.tensors_);
  if (!values) return values.error();
  network.values_ = std::move(*values);
  network.batch_axes_ = model::batch_axes(network.shape_, network.values_);
  if (const auto checked = check_policy(network.shape_, network.values_); !checked) return checked.error();
  return network;
}

Result<std::vector<Tensor>> Network::complete(std::vector<std::optional<Tensor>> inputs) const {
  Sizes sizes;
  for (std::size_t i = 0; i < shape_.inputs.size(); ++i) {
    const TensorSignature& declared = shape_.inputs[i];
    const std::string path = "inputs." + declared.name;
    if (!inputs[i]) {
      if (declared.optional) continue;
      return invalid_argument(fmt::format("the input '{}' is missing", declared.name), path);
    }
    if (inputs[i]->type != declared.type)
      return invalid_argument(
          fmt::format("the input '{}' is {}; expected {}", declared.name, element_name(inputs[i]->type), element_name(declared.type)),
          path);
    const TensorShape& given = inputs[i]->shape;
    bool fits = given.size() == declared.shape.size();
    for (std::size_t d = 0; fits && d < given.size(); ++d) fits = sizes.fits(declared.shape[d], given[d]);
    if (!fits)
      return invalid_argument(
          fmt::format("the input '{}' has the shape [{}]; expected {}", declared.name, fmt::join(given, ", "), sizes.text(declared.shape)),
          path);
  }
  std::vector<Tensor> complete;
  for (std::size_t i = 0; i < shape_.inputs.size(); ++i) {
    if (inputs[i]) {
      complete.push_back(std::move(*inputs[i]));
      continue;
    }
    TensorShape shape;
    for (const Extent& extent : shape_.inputs[i].shape) {
      const auto size = sizes.of(extent);
      if (!size)
        return invalid_argument(
            fmt::format("the input '{}' is missing, and no other says the size '{}'", shape_.inputs[i].name, extent.name),
            "inputs." + shape_.inputs[i].name);
      shape.push_back(*size);
    }
    if (bounded_count(shape) > kMostValues) return too_large("the input", shape_.inputs[i].name);
    complete.push_back(Tensor::zeros(shape_.inputs[i].type, std::move(shape)));
  }
  return complete;
}

NetworkRun::NetworkRun(const Network& network, std::vector<Tensor> inputs, std::vector<std::size_t> outputs, kernels::ThreadTeam& team)
    : network_(network), values_(std::move(inputs)), outputs_(std::move(outputs)), needed_(network.shape().layers.size()),
      products_(network.table(), team) {
  const NetworkShape& shape = network.shape();
  values_.resize(static_cast<std::size_t>(shape.values));
  std::vector<bool> wanted(values_.size());
  for (const std::size_t output : outputs_) wanted[static_cast<std::size_t>(shape.outputs[output].value)] = true;
  for (std::size_t i = shape.layers.size(); i-- > 0;) {
    const NetworkLayer& layer = shape.layers[i];
    for (std::size_t value = 0; value < wanted.size(); ++value) {
      if (wanted[value] && gives(layer, static_cast<ValueId>(value))) needed_[i] = true;
    }
    if (!needed_[i]) continue;
    for (const ValueId value : layer.inputs) wanted[static_cast<std::size_t>(value)] = true;
    for (const ValueId value : layer.states) wanted[static_cast<std::size_t>(value)] = true;
  }
  skip_unneeded();
}

void NetworkRun::skip_unneeded() {
  while (!done() && !needed_[next_]) ++next_;
}

Result<void> NetworkRun::advance() {
  const NetworkLayer& layer = network_.shape().layers[next_];
  const auto at = [&](ValueId id) { return &values_[static_cast<std::size_t>(id)]; };
  std::vector<const Tensor*> inputs;
  std::vector<const Tensor*> states;
  std::ranges::transform(layer.inputs, std::back_inserter(inputs), at);
  std::ranges::transform(layer.states, std::back_inserter(states), at);
  const LayerCall call{layer, network_.tensors()[next_], inputs, states};
  if (values_of(call) > kMostValues) return too_large("the layer", layer.name);
  if (layer.state_count() > 0) {
    std::vector<Tensor> results = run_recurrent(call, products_);
    std::ranges::move(results, values_.begin() + layer.output);
  } else {
    auto result = run_layer(call, products_);
    if (!result) return result.error();
    *at(layer.output) = std::move(*result);
  }
  ++next_;
  skip_unneeded();
  return {};
}

std::vector<Tensor> NetworkRun::take_outputs() {
  std::vector<Tensor> outputs;
  for (const std::size_t output : outputs_) outputs.push_back(values_[static_cast<std::size_t>(network_.shape().outputs[output].value)]);
  return outputs;
}

}  // namespace braid::model
