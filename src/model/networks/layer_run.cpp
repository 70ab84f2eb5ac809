#include "model/networks/layer_run.h"

#include "model/networks/layer_functions.h"
#include "model/networks/recurrent_run.h"
#include "model/networks/softmax_run.h"

#include <cstddef>
#include <cstdlib>

namespace braid::model {
namespace {

constexpr std::int64_t kRoomOfPiece = std::int64_t{1} << 20;  // values

// A layer whose parts are computed one by one.
class PartedRun final : public LayerRun {
 public:
  PartedRun(const LayerCall& call, NetworkProducts& products, LayerParts parts)
      : call_(call), products_(products), parts_(std::move(parts)) {
    add_result(parts_.shape);
  }

  Result<void> advance() override {
    Tensor& out = results_.front();
    if (!make_room(out)) return {};
    const std::int64_t end = std::min(parts_.count, next_ + parts_.of_piece);
    const Result<void> computed = parts_.compute(call_, products_, {next_, end}, out);
    next_ = end;
    return computed;
  }
  bool done() const override { return next_ == parts_.count && has_room(results_.front()); }

 private:
  const LayerCall call_;
  NetworkProducts& products_;
  const LayerParts parts_;
  std::int64_t next_ = 0;
};

Result<LayerParts> parts_of(const LayerCall& call) {
  switch (call.layer.type) {
    case LayerType::kLinear:
      return linear_parts(call);
    case LayerType::kLayerNorm:
      return layer_norm_parts(call);
    case LayerType::kEmbedding:
      return embedding_parts(call);
    case LayerType::kConv1d:
      return conv1d_parts(call);
    case LayerType::kAdd:
      return add_parts(call);
    case LayerType::kConcat:
      return concat_parts(call);
    case LayerType::kLast:
      return last_parts(call);
    case LayerType::kParameter:
      return parameter_parts(call);
    case LayerType::kRelu:
    case LayerType::kTanh:
    case LayerType::kSigmoid:
    case LayerType::kGelu:
    case LayerType::kSilu:
    case LayerType::kSoftplus:
      return activation_parts(call);
    case LayerType::kSoftmax:
    case LayerType::kLogSoftmax:
    case LayerType::kLstm:
    case LayerType::kGru:
      break;  // runs of their own
  }
  std::abort();
}

}  // namespace

bool make_room(Tensor& tensor) {
  const auto count = static_cast<std::size_t>(value_count(tensor.shape));
  const auto grow = [count](auto& values) {
    if (values.size() == count) return true;
    values.reserve(count);
    values.resize(std::min(count, values.size() + static_cast<std::size_t>(kRoomOfPiece)));
    return values.size() == count;
  };
  return tensor.type == ElementType::kFloat32 ? grow(tensor.floats) : grow(tensor.integers);
}

void LayerRun::add_result(TensorShape shape) {
  results_.push_back({.type = ElementType::kFloat32, .shape = std::move(shape), .floats = {}, .integers = {}});
}

Result<std::unique_ptr<LayerRun>> begin_layer(const LayerCall& call, NetworkProducts& products) {
  if (call.layer.state_count() > 0) return std::unique_ptr<LayerRun>(std::make_unique<RecurrentRun>(call, products));
  if (call.layer.type == LayerType::kSoftmax || call.layer.type == LayerType::kLogSoftmax)
    return std::unique_ptr<LayerRun>(std::make_unique<SoftmaxRun>(call));
  Result<LayerParts> parts = parts_of(call);
  if (!parts) return parts.error();
  return std::unique_ptr<LayerRun>(std::make_unique<PartedRun>(call, products, std::move(*parts)));
}

}  // namespace braid::model
