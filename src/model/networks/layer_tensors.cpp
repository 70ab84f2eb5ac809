#include "model/networks/layer_tensors.h"

#include "kernels/encode.h"
#include "kernels/weight_type.h"
#include "model/stored_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>
#include <vector>

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

  // Of the tensor that has the layer's whole name; 0: there is none.
  std::size_t rank() const {
    const auto found = file_.tensors.find(layer_.weights);
    return found != file_.tensors.end() ? found->second.shape.size() : 0;
  }

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
    // An infinite one may be meant: of an action that there is not.
    if (std::ranges::any_of(*values, [](float value) { return std::isnan(value); }))
      return error(ErrorCode::kBadFile, suffix, "holds a value that is no number");
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

// For which tier, and in which type.
struct MatrixPacking {
  const kernels::KernelTable& table;
  kernels::WeightType type;

  Result<LayerMatrix> operator()(const float* values, std::int64_t outputs, std::int64_t inputs) const {
    return pack_floats(table, type, values, outputs, inputs, "a network's weights");
  }
};

Result<LayerTensors> load_linear(const TensorSource& source, const MatrixPacking& pack) {
  const auto weight = source.need("weight", 2);
  if (!weight) return weight.error();
  auto packed = pack(weight->values.data(), weight->shape[0], weight->shape[1]);
  if (!packed) return packed.error();
  auto bias = source.vector_of("bias", weight->shape[0]);
  if (!bias) return bias.error();
  packed->bias = std::move(*bias);
  LayerTensors tensors;
  tensors.matrices.push_back(std::move(*packed));
  return tensors;
}

Result<LayerTensors> load_conv1d(const NetworkLayer& layer, const TensorSource& source, const MatrixPacking& pack) {
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
    auto packed = pack(weight->values.data() + group * group_outputs * inputs, group_outputs, inputs);
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

// A vector, which may be a matrix of one row.
Result<LayerTensors> load_parameter(const TensorSource& source) {
  auto weight = source.need("", source.rank() == 2 ? 2 : 1);
  if (!weight) return weight.error();
  if (weight->shape.front() != 1 && weight->shape.size() == 2)
    return source.error(ErrorCode::kBadFile, "", fmt::format("has {} rows; expected one", weight->shape.front()));
  LayerTensors tensors;
  tensors.width = weight->shape.back();
  tensors.table = std::move(weight->values);
  return tensors;
}

Result<LayerTensors> load_layer_norm(const TensorSource& source) {
  if (source.has("running_mean"))
    return source.error(ErrorCode::kUnsupported, "running_mean",
                        "is a batch norm's, which is not served: fold it into the layer before it");
  LayerTensors tensors;
  const bool has_weight = source.has("weight");
  if (!has_weight && !source.has("bias")) return tensors;
  auto first = source.need(has_weight ? "weight" : "bias", 1);
  if (!first) return first.error();
  const std::int64_t width = first->shape[0];
  auto bias = source.vector_of("bias", width);
  if (!bias) return bias.error();
  tensors.scale = has_weight ? std::move(first->values) : std::vector<float>(static_cast<std::size_t>(width), 1.0F);
  tensors.shift = std::move(*bias);
  if (tensors.shift.empty()) tensors.shift.resize(tensors.scale.size());
  return tensors;
}

// [gates * hidden, inputs]; `inputs` is -1 where any number will do.
Result<LayerMatrix> load_gates(const TensorSource& source, const MatrixPacking& pack, const std::string& kind, const std::string& level,
                               std::int64_t outputs, std::int64_t inputs) {
  const auto weight = source.need("weight_" + kind + level, 2);
  if (!weight) return weight.error();
  if (weight->shape[0] != outputs || (inputs >= 0 && weight->shape[1] != inputs))
    return source.error(ErrorCode::kBadFile, "weight_" + kind + level,
                        fmt::format("has the shape [{}]; expected [{}, {}]", fmt::join(weight->shape, ", "), outputs,
                                    inputs < 0 ? "inputs" : fmt::format("{}", inputs)));
  auto packed = pack(weight->values.data(), outputs, weight->shape[1]);
  if (!packed) return packed.error();
  auto bias = source.vector_of("bias_" + kind + level, outputs);
  if (!bias) return bias.error();
  packed->bias = std::move(*bias);
  return packed;
}

Result<LayerTensors> load_recurrent(const NetworkLayer& layer, const TensorSource& source, const MatrixPacking& pack) {
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
      auto of_inputs = load_gates(source, pack, "ih", suffix, gates, inputs);
      if (!of_inputs) return of_inputs.error();
      auto of_state = load_gates(source, pack, "hh", suffix, gates, hidden);
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

Result<LayerMatrix> pack_floats(const kernels::KernelTable& table, kernels::WeightType type, const float* values, std::int64_t outputs,
                                std::int64_t inputs, std::string_view what) {
  const bool fits = type != kernels::WeightType::kF32 && inputs % kernels::weight_format(type)->block_values == 0;
  const auto stored = fits ? type : kernels::WeightType::kF32;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t packed_bytes = table.packed_bytes(stored, outputs, inputs);
  auto storage =
      files::Mapping::reserve(packed_bytes, what, packed_bytes < kHugePage ? files::HugePages::kOff : files::HugePages::kTransparent);
  if (!storage) return storage.error();
  LayerMatrix packed{.matrix = {stored, outputs, inputs, storage->data()}, .bias = {}, .storage = std::move(*storage)};
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  std::vector<std::byte> encoded;
  if (fits) {
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(stored), inputs);
    encoded.resize(static_cast<std::size_t>(outputs) * row_bytes);
    for (std::int64_t row = 0; row < outputs; ++row)
      kernels::encode_row(stored, values + row * inputs, inputs, encoded.data() + static_cast<std::size_t>(row) * row_bytes);
    bytes = encoded.data();
  }
  table.pack(stored, bytes, outputs, inputs, packed.storage.data(), 0, packed.matrix.panels());
  return packed;
}

Result<LayerTensors> load_layer_tensors(const NetworkLayer& layer, const files::SafeTensors& file, const kernels::KernelTable& table,
                                        kernels::WeightType type, const std::string& path) {
  const TensorSource source(layer, file, path);
  const MatrixPacking pack{table, type};
  switch (layer.type) {
    case LayerType::kLinear:
      return load_linear(source, pack);
    case LayerType::kConv1d:
      return load_conv1d(layer, source, pack);
    case LayerType::kEmbedding:
      return load_embedding(source);
    case LayerType::kLayerNorm:
      return load_layer_norm(source);
    case LayerType::kParameter:
      return load_parameter(source);
    case LayerType::kLstm:
    case LayerType::kGru:
      return load_recurrent(layer, source, pack);
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
