#include "model/encoders/encoder_tensors.h"

#include "kernels/half.h"
#include "kernels/weight_type.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <numeric>

namespace braid::model {
namespace {

std::size_t values_of(const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

Error tensor_error(ErrorCode code, const std::string& name, const std::string& what) {
  return {code, fmt::format("the tensor '{}' {}", name, what), {}};
}

}  // namespace

std::string part_of(const std::string& weight, std::string_view part) {
  constexpr std::string_view kEnd = "weight";
  return fmt::format("{}parametrizations.weight.{}", weight.substr(0, weight.size() - std::min(kEnd.size(), weight.size())), part);
}

const files::SafeTensor* FolderTensors::find(const std::string& name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) found = tensors_.find(part_of(name, "original"));
  return found != tensors_.end() ? &found->second : nullptr;
}

Result<EncoderTensor> FolderTensors::read(const std::string& name) const {
  const files::SafeTensor* const found = find(name);
  if (found == nullptr) return tensor_error(ErrorCode::kBadFile, name, "is missing");
  const files::SafeTensor& tensor = *found;
  EncoderTensor floats{tensor.shape, std::vector<float>(values_of(tensor.shape))};
  if (tensor.dtype == "F32") {
    std::memcpy(floats.values.data(), tensor.bytes.data(), tensor.bytes.size());
    return floats;
  }
  if (tensor.dtype != "F16" && tensor.dtype != "BF16")
    return tensor_error(ErrorCode::kUnsupported, name, fmt::format("is of type {}; expected F32, F16 or BF16", tensor.dtype));
  const auto convert = tensor.dtype == "F16" ? kernels::f16_to_float : kernels::bf16_to_float;
  for (std::size_t i = 0; i < floats.values.size(); ++i) floats.values[i] = convert(kernels::load_half(tensor.bytes.data() + i * 2));
  return floats;
}

Result<EncoderTensor> GgufTensors::read(const std::string& name) const {
  const files::GgufTensor* const tensor = file_.tensor(name);
  if (tensor == nullptr) return tensor_error(ErrorCode::kBadFile, name, "is missing");
  const auto type = static_cast<kernels::WeightType>(tensor->type);
  const kernels::WeightFormat* const format = kernels::weight_format(type);
  if (format == nullptr) return tensor_error(ErrorCode::kUnsupported, name, "is of a type that this build cannot compute with");
  EncoderTensor floats{{tensor->shape.rbegin(), tensor->shape.rend()}, std::vector<float>(values_of(tensor->shape))};
  const std::int64_t columns = tensor->shape.front();
  const std::size_t row_bytes = kernels::stored_row_bytes(*format, columns);
  for (std::size_t row = 0; row * static_cast<std::size_t>(columns) < floats.values.size(); ++row)
    kernels::dequantize_row(type, tensor->bytes.data() + row * row_bytes, columns,
                            floats.values.data() + row * static_cast<std::size_t>(columns));
  return floats;
}

}  // namespace braid::model
