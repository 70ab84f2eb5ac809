#include "model/networks/layer_tensors.h"

#include "model/stored_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>

namespace braid::model {
namespace {

struct FloatTensor {
  TensorShape shape;
  std::vector<float> values;
};

// Reads a layer's tensors by the end of their names.
class TensorSource {
 public:
  TensorSource(const NetworkLayer& layer, const files::SafeTensors& file, std::string path)
      : layer_(layer), file_(file), path_(std::move(path)) {}

  bool has(const std::string& suffix) const { return file_.tensors.contains(layer_.weights + suffix); }

  Error error(ErrorCode code, const std::string& suffix, std::string_view what) const {
    return {code, fmt::format("model.safetensors: the tensor '{}{}' of {} ({}) {}", layer_.weights, suffix, path_, layer_.name, what),
            path_ + ".weights"};
  }

  // Of `rank` dimensions.
  Result<FloatTensor> need(const std::string& suffix, std::size_t rank) const {
    const auto found = file_.tensors.find(layer_.weights + suffix);
    if (found == file_.tensors.end()) return error(ErrorCode::kBadFile, suffix, "is missing");
    const files::SafeTensor& tensor = found->second;
    if (tensor.shape.size() != rank)
      return error(ErrorCode::kBadFile, suffix,
                   fmt::format("has the shape [{}]; expected {} dimensions", fmt::join(tensor.shape, ", "), rank));
    if (value_count(tensor.shape) == 0) return error(ErrorCode::kBadFile, suffix, "is empty");
    auto values = floats_of(tensor);
    if (!values) return error(ErrorCode::kUnsupported, suffix, fmt::format("is of type {}; expected F32, F16 or BF16", tensor.dtype));
    return FloatTensor{tensor.shape, std::move(*values)};
  }

  // A vector of so many values; empty where the file has none.
  Result<std::vector<float>> vector_of(const std::string& suffix, std::int64_t size) const {
    if (!has(suffix)) return std::vector<float>{};
    auto tensor = need(suffix, 1);
    if (!tensor) return tensor.error();
    if (tensor->shape[0] != size)
      return error(ErrorCode::kBadFile, suffix, fmt::format("has {} values; expected {}", tensor->shape[0], size));
    return std::move(tensor->values);
  }

 private:
  const NetworkLayer& layer_;
  const files::SafeTensors& file_;
  std::string path_;
};

Result<LayerMatrix> pack_matrix(const kernels::KernelTable& table, const float* values, std::int64_t outputs, std::int64_t inputs) {
  constexpr auto kType = kernels::WeightType::kF32;
  auto storage = files::Mapping::reserve(table.packed_bytes(kType, outputs, inputs), "a network's weights", files::HugePages::kOff);
  if (!storage) return storage.error();
  LayerMatrix packed{.matrix = {kType, outputs, inputs, storage->data()}, .bias = {}, .storage = std::move(*storage)};
  table.pack(kType, reinterpret_cast<const std::byte*>(values), outputs, inputs, packed.storage.data(), 0, packed.matrix.panels());
  return packed;
}

Result<LayerTensors> load_linear(const TensorSource& source, const kernels::KernelTable& table) {
  const auto weight = source.need("weight", 2);
  if (!weight) return weight.error();
  auto packed = pack_matrix(table, weight->values.data(), weight->shape[0], weight->shape[1]);
  if (!packed) return packed.error();
  auto bias = source.vector_of("bias", weight->shape[0]);
  if (!bias) return bias.error();
  packed->bias = std::move(*bias);
  LayerTensors tensors;
  tensors.matrices.push_back(std::move(*packed));
  return tensors;
}

Result<LayerTensors> load_conv1d(const NetworkLayer& layer, const TensorSource& source, const kernels::KernelTable& table) {
  const auto weight = source.need("weight", 3);
  if (!weight) return weight.error();
  const std::int64_t outputs = weight->shape[0];
  if (outputs % layer.groups != 0)
    return source.error(ErrorCode::kBadFile, "weight", fmt::format("has {} outputs, which {} groups do not divide", outputs, layer.groups));
  const auto bias = source.vector_of("bias", outputs);
  if (!bias) return bias.error();
  const std::int64_t group_outputs = outputs / layer.groups;
  const std::int64_t inputs = weight->shape[1] * weight->shape[2];
  LayerTensors tensors;
  tensors.kernel = weight->shape[2];
  for (std::int64_t group = 0; group < layer.groups; ++group) {
    auto packed = pack_matrix(table, weight->values.data() + group * group_outputs * inputs, group_outputs, inputs);
    if (!packed) return packed.error();
    if (!bias->empty()) packed->bias.assign(bias->begin() + group * group_outputs, bias->begin() + (group + 1) * group_outputs);
    tensors.matrices.push_back(std::move(*packed));
  }
  return tensors;
}

Result<LayerTensors> load_embedding(const TensorSource& source) {
  auto weight = source.need("weight", 2);
  if (!weight) return weight.error();
  LayerTensors tensors;
  tensors.entries = weight->shape[0];
  tensors.width = weight->shape[1];
  tensors.table = std::move(weight->values);
  return tensors;
}

Result<LayerTensors> load_layer_norm(const TensorSource& source) {
  LayerTensors tensors;
  if (!source.has("weight")) return tensors;
  auto weight = source.need("weight", 1);
  if (!weight) return weight.error();
  auto bias = source.vector_of("bias", weight->shape[0]);
  if (!bias) return bias.error();
  tensors.scale = std::move(weight->values);
  tensors.shift = std::move(*bias);
  if (tensors.shift.empty()) tensors.shift.resize(tensors.scale.size());
  return tensors;
}

// [gates * hidden, inputs]; `inputs` is -1 where any number will do.
Result<LayerMatrix> load_gates(const TensorSource& source, const kernels::KernelTable& table, const std::string& kind,
                               const std::string& level, std::int64_t outputs, std::int64_t inputs) {
  const auto weight = source.need("weight_" + kind + level, 2);
  if (!weight) return weight.error();
  if (weight->shape[0] != outputs || (inputs >= 0 && weight->shape[1] != inputs))
    return source.error(ErrorCode::kBadFile, "weight_" + kind + level,
                        fmt::format("has the shape [{}]; expected [{}, {}]", fmt::join(weight->shape, ", "), outputs,
                                    inputs < 0 ? "inputs" : fmt::format("{}", inputs)));
  auto packed = pack_matrix(table, weight->values.data(), outputs, weight->shape[1]);
  if (!packed) return packed.error();
  auto bias = source.vector_of("bias_" + kind + level, outputs);
  if (!bias) return bias.error();
  packed->bias = std::move(*bias);
  return packed;
}

Result<LayerTensors> load_recurrent(const NetworkLayer& layer, const TensorSource& source, const kernels::KernelTable& table) {
  if (source.has("weight_hr_l0")) return source.error(ErrorCode::kUnsupported, "weight_hr_l0", "projects the state, which is not served");
  if (!layer.bidirectional && source.has("weight_ih_l0_reverse"))
    return source.error(ErrorCode::kBadFile, "weight_ih_l0_reverse", "is there, but \"bidirectional\" is not true");
  const auto first = source.need("weight_hh_l0", 2);
  if (!first) return first.error();
  const std::int64_t hidden = first->shape[1];
  const std::int64_t gates = (layer.type == LayerType::kLstm ? 4 : 3) * hidden;
  LayerTensors tensors;
  for (std::int64_t level = 0; level < layer.depth; ++level) {
    for (std::int64_t direction = 0; direction < layer.directions(); ++direction) {
      const std::string suffix = fmt::format("_l{}{}", level, direction == 0 ? "" : "_reverse");
      const std::int64_t inputs = level > 0 ? hidden * layer.directions() : direction == 0 ? -1 : tensors.matrices.front().matrix.inputs;
      auto of_inputs = load_gates(source, table, "ih", suffix, gates, inputs);
      if (!of_inputs) return of_inputs.error();
      auto of_state = load_gates(source, table, "hh", suffix, gates, hidden);
      if (!of_state) return of_state.error();
      tensors.matrices.push_back(std::move(*of_inputs));
      tensors.matrices.push_back(std::move(*of_state));
    }
  }
  const std::string beyond = fmt::format("weight_ih_l{}", layer.depth);
  if (source.has(beyond)) return source.error(ErrorCode::kBadFile, beyond, fmt::format("is one more than its {} layers", layer.depth));
  return tensors;
}

}  // namespace

Result<LayerTensors> load_layer_tensors(const NetworkLayer& layer, const files::SafeTensors& file, const kernels::KernelTable& table,
                                        const std::string& path) {
  const TensorSource source(layer, file, path);
  switch (layer.type) {
    case LayerType::kLinear:
      return load_linear(source, table);
    case LayerType::kConv1d:
      return load_conv1d(layer, source, table);
    case LayerType::kEmbedding:
      return load_embedding(source);
    case LayerType::kLayerNorm:
      return load_layer_norm(source);
    case LayerType::kLstm:
    case LayerType::kGru:
      return load_recurrent(layer, source, table);
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
  return LayerTensors{};
}

}  // namespace braid::model
