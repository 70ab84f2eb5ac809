#include "model/networks/network.h"

#include "model/networks/batching.h"
#include "model/networks/policy_config.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace braid::model {
namespace {

// Whether a value is the layer's output or one of its states.
bool gives(const NetworkLayer& layer, ValueId value) { return value >= layer.output && value <= layer.output + layer.state_count(); }

// A value of a layer: what a small body of many short rows must not make large without end.
constexpr std::int64_t kMostValues = std::int64_t{1} << 28;

// Of what is given out, which is kept to the end: as many numbers as an answer may have (docs/networks.md).
constexpr std::size_t kMostWanted = std::size_t{1} << 25;

// Of an input that is left out, and is filled where there is no hurry otherwise.
constexpr std::int64_t kZerosAtOnce = std::int64_t{1} << 17;

// The product, or kMostValues + 1 where it is more.
std::int64_t bounded_count(const TensorShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent > 0 && count > kMostValues / extent) return kMostValues + 1;
    count *= extent;
  }
  return count;
}

// The most values that a result of the layer has.
std::int64_t values_of(const LayerCall& call) {
  TensorShape shape = call.inputs[0]->shape;
  switch (call.layer.type) {
    case LayerType::kLinear:
      shape.back() = call.tensors.matrices[0].matrix.outputs;
      break;
    case LayerType::kEmbedding:
      shape.push_back(call.tensors.width);
      break;
    case LayerType::kParameter:
      shape.back() = call.tensors.width;
      break;
    case LayerType::kConv1d: {
      const std::int64_t positions = shape[2] + 2 * std::min(call.layer.padding, kMostValues);
      return bounded_count({shape[0], positions, call.tensors.matrices[0].matrix.outputs, call.layer.groups});
    }
    case LayerType::kLstm:
    case LayerType::kGru: {
      const std::int64_t width = call.tensors.hidden() * call.layer.directions();
      return std::max(bounded_count({shape[0], shape[1], width}), bounded_count({shape[0], call.layer.depth, width}));
    }
    case LayerType::kLayerNorm:
    case LayerType::kRelu:
    case LayerType::kTanh:
    case LayerType::kSigmoid:
    case LayerType::kGelu:
    case LayerType::kSilu:
    case LayerType::kSoftplus:
    case LayerType::kSoftmax:
    case LayerType::kLogSoftmax:
    case LayerType::kAdd:
    case LayerType::kConcat:
    case LayerType::kLast:
      break;
  }
  return bounded_count(shape);
}

Error too_large(std::string_view what, const std::string& name) {
  return invalid_argument(fmt::format("{} '{}' would have more than {} values: ask for fewer rows at once", what, name, kMostValues),
                          "inputs");
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
    Tensor& zeros = complete.emplace_back();
    zeros.type = shape_.inputs[i].type;
    zeros.shape = std::move(shape);
    if (value_count(zeros.shape) <= kZerosAtOnce) make_room(zeros);
  }
  return complete;
}

NetworkRun::NetworkRun(const Network& network, std::vector<Tensor> inputs, std::vector<std::size_t> outputs, kernels::ThreadTeam& team)
    : network_(network), values_(std::move(inputs)), outputs_(std::move(outputs)), needed_(network.shape().layers.size()),
      products_(network.table(), team) {
  const NetworkShape& shape = network.shape();
  const std::size_t end = shape.layers.size();
  const std::size_t given = values_.size();
  values_.resize(static_cast<std::size_t>(shape.values));
  last_reader_.resize(values_.size());
  for (const std::size_t output : outputs_) last_reader_[static_cast<std::size_t>(shape.outputs[output].value)] = end;
  for (std::size_t i = end; i-- > 0;) {
    const NetworkLayer& layer = shape.layers[i];
    for (std::size_t value = 0; value < values_.size(); ++value) {
      if (last_reader_[value] && gives(layer, static_cast<ValueId>(value))) needed_[i] = true;
    }
    if (!needed_[i]) continue;
    for (const std::vector<ValueId>& read : {layer.inputs, layer.states})
      for (const ValueId value : read)
        last_reader_[static_cast<std::size_t>(value)] = last_reader_[static_cast<std::size_t>(value)].value_or(i);
  }
  for (std::size_t value = 0; value < given; ++value)
    if (!last_reader_[value]) values_[value] = Tensor();
  skip_unneeded();
}

void NetworkRun::skip_unneeded() {
  while (!is_behind_last() && !needed_[next_]) ++next_;
}

std::size_t NetworkRun::kept_values() const {
  std::size_t count = 0;
  for (const Tensor& value : values_) count += value.floats.size() + value.integers.size();
  return count;
}

// Whether what is to be given out, as far as it is there, fits an answer.
Result<void> NetworkRun::check_wanted() const {
  std::size_t count = 0;
  for (std::size_t value = 0; value < values_.size(); ++value)
    if (last_reader_[value] == network_.shape().layers.size()) count += static_cast<std::size_t>(value_count(values_[value].shape));
  if (count <= kMostWanted) return {};
  return invalid_argument(fmt::format("the outputs have more than {} numbers: ask for fewer rows or outputs at once", kMostWanted),
                          "outputs");
}

Result<void> NetworkRun::begin() {
  const NetworkLayer& layer = network_.shape().layers[next_];
  const auto at = [&](ValueId id) { return &values_[static_cast<std::size_t>(id)]; };
  layer_inputs_.clear();
  layer_states_.clear();
  std::ranges::transform(layer.inputs, std::back_inserter(layer_inputs_), at);
  std::ranges::transform(layer.states, std::back_inserter(layer_states_), at);
  const LayerCall call{layer, network_.tensors()[next_], layer_inputs_, layer_states_};
  if (values_of(call) > kMostValues) return too_large("the layer", layer.name);
  auto begun = begin_layer(call, products_);
  if (!begun) return begun.error();
  layer_ = std::move(*begun);
  return {};
}

// Of inputs that were left out. True: that is done.
bool NetworkRun::fill_inputs() {
  for (; filled_ < network_.shape().inputs.size(); ++filled_)
    if (last_reader_[filled_] && !make_room(values_[filled_])) return false;
  return true;
}

Result<void> NetworkRun::advance() {
  if (!fill_inputs() || is_behind_last()) return {};
  if (!layer_)
    if (const Result<void> begun = begin(); !begun) return begun;
  if (!layer_->done())
    if (const Result<void> advanced = layer_->advance(); !advanced) return advanced;
  if (!layer_->done()) return {};
  end();
  return check_wanted();
}

// Of the layer: what nobody reads any more is freed.
void NetworkRun::end() {
  auto value = static_cast<std::size_t>(network_.shape().layers[next_].output);
  for (Tensor& result : layer_->take_results()) {
    if (last_reader_[value]) values_[value] = std::move(result);
    ++value;
  }
  layer_.reset();
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (last_reader_[i] == next_) values_[i] = Tensor();
  ++next_;
  skip_unneeded();
}

std::vector<Tensor> NetworkRun::take_outputs() {
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto value_of = [this](std::size_t output) { return network_.shape().outputs[output].value; };
    const ValueId id = value_of(outputs_[i]);
    Tensor& value = values_[static_cast<std::size_t>(id)];
    const bool again = std::ranges::any_of(outputs_.begin() + static_cast<std::ptrdiff_t>(i) + 1, outputs_.end(),
                                           [&](std::size_t later) { return value_of(later) == id; });
    outputs.push_back(again ? value : std::move(value));
  }
  return outputs;
}

}  // namespace braid::model
