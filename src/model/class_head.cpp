#include "model/class_head.h"

#include "model/tensor_reader.h"

#include <cstddef>
#include <string>
#include <utility>

namespace braid::model {
namespace {

const std::string kClassWeight = "cls.output.weight";
const std::string kClassBias = "cls.output.bias";

}  // namespace

ClassHead ClassHead::read(const files::GgufFile& file, TensorReader& reader, std::int64_t width, ClassHead older) {
  ClassHead head = std::move(older);
  const files::GgufTensor* const tensor = file.tensor(kClassWeight);
  if (tensor == nullptr && head.width_ == 0) return head;
  const std::int64_t classes = tensor == nullptr ? head.classes() : tensor->shape.size() == 2 ? tensor->shape.back() : 1;
  if (tensor != nullptr) reader.table(kClassWeight, width, classes, head.weights_);
  reader.vector(kClassBias, classes, Presence::kOptional, head.bias_);
  head.width_ = width;
  return head;
}

ClassHead ClassHead::judging(const kernels::KernelTable& table, const kernels::PackedMatrix& output, std::int64_t yes, std::int64_t no) {
  ClassHead head;
  head.width_ = output.inputs;
  head.weights_.resize(static_cast<std::size_t>(output.inputs));
  std::vector<float> other(head.weights_.size());
  table.unpack_row(output, yes, head.weights_.data());
  table.unpack_row(output, no, other.data());
  for (std::size_t i = 0; i < other.size(); ++i) head.weights_[i] -= other[i];
  return head;
}

ClassHead ClassHead::difference(std::int64_t one, std::int64_t other) const {
  ClassHead head;
  head.width_ = width_;
  for (std::int64_t i = 0; i < width_; ++i)
    head.weights_.push_back(weights_[static_cast<std::size_t>(one * width_ + i)] - weights_[static_cast<std::size_t>(other * width_ + i)]);
  if (!bias_.empty()) head.bias_ = {bias_[static_cast<std::size_t>(one)] - bias_[static_cast<std::size_t>(other)]};
  return head;
}

ClassHead ClassHead::of(std::int64_t width, std::vector<float> weights, std::vector<float> bias) {
  ClassHead head;
  head.width_ = width;
  head.weights_ = std::move(weights);
  head.bias_ = std::move(bias);
  return head;
}

void ClassHead::apply(std::span<const float> vector, std::span<float> scores) const {
  for (std::size_t row = 0; row < scores.size(); ++row) {
    const float* const weights = weights_.data() + row * static_cast<std::size_t>(width_);
    double sum = bias_.empty() ? 0.0 : static_cast<double>(bias_[row]);
    for (std::size_t i = 0; i < vector.size(); ++i) sum += static_cast<double>(weights[i]) * static_cast<double>(vector[i]);
    scores[row] = static_cast<float>(sum);
  }
}

}  // namespace braid::model
