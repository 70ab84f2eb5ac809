#include "model/networks/value_shapes.h"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::model {
namespace {

std::string text_of(const SymbolicShape& shape) {
  std::string text;
  for (const Extent& extent : shape) {
    if (!text.empty()) text += ", ";
    text += extent.size >= 0 ? fmt::format("{}", extent.size) : extent.name;
  }
  return "[" + text + "]";
}

class Inference {
 public:
  Inference(const NetworkShape& network, const std::vector<LayerTensors>& tensors)
      : network_(network), tensors_(tensors), values_(static_cast<std::size_t>(network.values)) {}

  Result<std::vector<ValueShape>> run() {
    for (std::size_t i = 0; i < network_.inputs.size(); ++i) values_[i] = {network_.inputs[i].type, network_.inputs[i].shape};
    for (index_ = 0; index_ < network_.layers.size(); ++index_) {
      const auto inferred = infer();
      if (!inferred) return inferred.error();
    }
    return std::move(values_);
  }

 private:
  const NetworkLayer& layer() const { return network_.layers[index_]; }
  const LayerTensors& tensors() const { return tensors_[index_]; }
  const ValueShape& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  const SymbolicShape& input() const { return value(layer().inputs[0]).shape; }
  void give(SymbolicShape shape) { values_[static_cast<std::size_t>(layer().output)].shape = std::move(shape); }

  Error bad(std::string_view field, std::string_view what) const {
    std::string path = fmt::format("layers[{}].{}", index_, field);
    return {ErrorCode::kBadFile, fmt::format("config.json: {} ({}): {}", path, layer().name, what), std::move(path)};
  }

  // A size that nothing else is known to be equal to.
  Extent unknown() const { return {-1, fmt::format("{}'s time", layer().name)}; }

  Result<void> infer() {
    const ElementType wanted = layer().type == LayerType::kEmbedding ? ElementType::kInt64 : ElementType::kFloat32;
    for (const ValueId id : layer().inputs) {
      if (value(id).type != wanted)
        return bad("input", fmt::format("is {}; expected {}", element_name(value(id).type), element_name(wanted)));
    }
    switch (layer().type) {
      case LayerType::kLinear:
        return infer_linear();
      case LayerType::kLayerNorm:
        return infer_layer_norm();
      case LayerType::kEmbedding:
        return infer_embedding();
      case LayerType::kConv1d:
        return infer_conv1d();
      case LayerType::kLstm:
      case LayerType::kGru:
        return infer_recurrent();
      case LayerType::kSoftmax:
      case LayerType::kLogSoftmax:
        if (const auto axis = axis_of(input().size()); !axis) return axis.error();
        give(input());
        return {};
      case LayerType::kRelu:
      case LayerType::kTanh:
      case LayerType::kSigmoid:
      case LayerType::kGelu:
      case LayerType::kSilu:
      case LayerType::kSoftplus:
        give(input());
        return {};
      case LayerType::kAdd:
        return infer_add();
      case LayerType::kConcat:
        return infer_concat();
      case LayerType::kLast:
        return infer_last();
      case LayerType::kParameter:
        return infer_parameter();
    }
    return {};
  }

  Result<void> infer_linear() {
    const kernels::PackedMatrix& matrix = tensors().matrices[0].matrix;
    SymbolicShape shape = input();
    if (shape.back().size != matrix.inputs)
      return bad("input", fmt::format("has the shape {}; its weight takes {} values", text_of(shape), matrix.inputs));
    shape.back() = {matrix.outputs, {}};
    give(std::move(shape));
    return {};
  }

  Result<void> infer_parameter() {
    SymbolicShape shape = input();
    shape.back() = {tensors().width, {}};
    give(std::move(shape));
    return {};
  }

  Result<void> infer_layer_norm() {
    const auto width = static_cast<std::int64_t>(tensors().scale.size());
    if (width != 0 && input().back().size != width)
      return bad("input", fmt::format("has the shape {}; its weight has {} values", text_of(input()), width));
    give(input());
    return {};
  }

  Result<void> infer_embedding() {
    SymbolicShape shape = input();
    shape.push_back({tensors().width, {}});
    give(std::move(shape));
    return {};
  }

  // [batch, channels, time]
  Result<void> infer_conv1d() {
    SymbolicShape shape = input();
    const std::int64_t channels = tensors().matrices[0].matrix.inputs / tensors().kernel * layer().groups;
    if (shape.size() != 3 || shape[1].size != channels)
      return bad("input", fmt::format("has the shape {}; expected [batch, {}, time]", text_of(shape), channels));
    shape[1] = {tensors().matrices[0].matrix.outputs * layer().groups, {}};
    if (shape[2].size >= 0) {
      const std::int64_t span = (tensors().kernel - 1) * layer().dilation + 1;
      const std::int64_t room = shape[2].size + 2 * layer().padding - span;
      if (room < 0)
        return bad("input", fmt::format("has {} positions, padded {}; its weight spans {}", shape[2].size, layer().padding, span));
      shape[2].size = room / layer().stride + 1;
    } else {
      shape[2] = unknown();
    }
    give(std::move(shape));
    return {};
  }

  // [batch, time, width]
  Result<void> infer_recurrent() {
    SymbolicShape shape = input();
    const std::int64_t inputs = tensors().matrices[0].matrix.inputs;
    if (shape.size() != 3 || shape[2].size != inputs)
      return bad("input", fmt::format("has the shape {}; expected [batch, time, {}]", text_of(shape), inputs));
    const SymbolicShape state{{layer().depth * layer().directions(), {}}, shape[0], {tensors().hidden(), {}}};
    for (const ValueId id : layer().states) {
      if (value(id).type != ElementType::kFloat32 || value(id).shape != state)
        return bad("state",
                   fmt::format("is {} {}; expected float32 {}", element_name(value(id).type), text_of(value(id).shape), text_of(state)));
    }
    for (std::int64_t i = 0; i < layer().state_count(); ++i) values_[static_cast<std::size_t>(layer().output + 1 + i)].shape = state;
    shape[2] = {tensors().hidden() * layer().directions(), {}};
    give(std::move(shape));
    return {};
  }

  Result<void> infer_add() {
    for (const ValueId id : layer().inputs) {
      const SymbolicShape& other = value(id).shape;
      if (other.size() != input().size()) return bad("input", fmt::format("has the shapes {} and {}", text_of(input()), text_of(other)));
      for (std::size_t i = 0; i < other.size(); ++i) {
        if (other[i] == input()[i] || other[i].size < 0 || input()[i].size < 0) continue;  // a request will tell
        return bad("input", fmt::format("has the shapes {} and {}", text_of(input()), text_of(other)));
      }
    }
    give(input());
    return {};
  }

  Result<std::size_t> axis_of(std::size_t rank) const {
    const std::int64_t axis = layer().axis < 0 ? layer().axis + static_cast<std::int64_t>(rank) : layer().axis;
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank))
      return bad("axis", fmt::format("{} is none of {} dimensions", layer().axis, rank));
    return static_cast<std::size_t>(axis);
  }

  Result<void> infer_concat() {
    SymbolicShape shape = input();
    const auto axis = axis_of(shape.size());
    if (!axis) return axis.error();
    shape[*axis] = {0, {}};
    for (const ValueId id : layer().inputs) {
      const SymbolicShape& other = value(id).shape;
      if (other.size() != shape.size()) return bad("input", fmt::format("has the shapes {} and {}", text_of(input()), text_of(other)));
      for (std::size_t i = 0; i < other.size(); ++i) {
        if (i == *axis || other[i] == shape[i] || other[i].size < 0 || shape[i].size < 0) continue;
        return bad("input", fmt::format("has the shapes {} and {}", text_of(input()), text_of(other)));
      }
      if (shape[*axis].size >= 0) shape[*axis] = other[*axis].size < 0 ? unknown() : Extent{shape[*axis].size + other[*axis].size, {}};
    }
    give(std::move(shape));
    return {};
  }

  // [..., time, width]
  Result<void> infer_last() {
    SymbolicShape shape = input();
    if (shape.size() < 2) return bad("input", fmt::format("has the shape {}; expected [..., time, width]", text_of(shape)));
    shape.erase(shape.end() - 2);
    give(std::move(shape));
    return {};
  }

  const NetworkShape& network_;
  const std::vector<LayerTensors>& tensors_;
  std::vector<ValueShape> values_;
  std::size_t index_ = 0;
};

}  // namespace

Result<std::vector<ValueShape>> infer_shapes(const NetworkShape& network, const std::vector<LayerTensors>& tensors) {
  return Inference(network, tensors).run();
}

}  // namespace braid::model
