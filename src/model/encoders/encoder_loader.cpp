#include "model/encoders/encoder_loader.h"

#include "kernels/encode.h"
#include "kernels/weight_type.h"

#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace braid::model {

std::vector<float> EncoderLoader::need(const std::string& name, const std::vector<std::int64_t>& shape) {
  if (error) return {};
  auto tensor = tensors_.read(name);
  if (!tensor) {
    error = tensor.error();
    return {};
  }
  if (tensor->shape != shape) {
    error = Error{
        ErrorCode::kBadFile,
        fmt::format("the tensor '{}' has the shape [{}]; expected [{}]", name, fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")),
        {}};
    return {};
  }
  into_.parameters += static_cast<std::int64_t>(tensor->values.size());
  return std::move(tensor->values);
}

// Rows of a table that has at least so many.
std::vector<float> EncoderLoader::rows(const std::string& name, std::int64_t least, std::int64_t width) {
  if (name.empty() || error) return {};
  auto tensor = tensors_.read(name);
  if (!tensor) {
    error = tensor.error();
    return {};
  }
  if (tensor->shape.size() != 2 || tensor->shape[0] < least || tensor->shape[1] != width) {
    error = Error{ErrorCode::kBadFile,
                  fmt::format("the tensor '{}' has the shape [{}]; expected [{}, {}]", name, fmt::join(tensor->shape, ", "), least, width),
                  {}};
    return {};
  }
  into_.parameters += static_cast<std::int64_t>(tensor->values.size());
  into_.bytes += tensor->values.size() * sizeof(float);
  return std::move(tensor->values);
}

EncoderNormWeights EncoderLoader::norm(const EncoderNorm& shape, std::int64_t width) {
  EncoderNormWeights weights;
  if (!shape) return weights;
  weights.rms = shape.rms;
  weights.weight = need(shape.weight, {width});
  for (float& value : weights.weight) value += shape.plus;
  if (!shape.bias.empty() && tensors_.has(shape.bias)) weights.bias = need(shape.bias, {width});
  if (weights.bias.empty()) weights.bias.resize(static_cast<std::size_t>(width));
  return weights;
}

LayerMatrix EncoderLoader::linear(const EncoderLinear& shape) {
  if (!shape || error) return {};
  auto tensor = tensors_.read(shape.weight);
  if (!tensor) {
    error = tensor.error();
    return {};
  }
  const bool whole = shape.first == 0;
  if (tensor->shape.size() != 2 || tensor->shape[1] != shape.inputs || tensor->shape[0] < shape.first + shape.outputs) {
    error = Error{ErrorCode::kBadFile,
                  fmt::format("the tensor '{}' has the shape [{}]; expected [{}, {}]", shape.weight, fmt::join(tensor->shape, ", "),
                              shape.first + shape.outputs, shape.inputs),
                  {}};
    return {};
  }
  into_.parameters += shape.outputs * shape.inputs;
  LayerMatrix packed = pack(tensor->values.data() + shape.first * shape.inputs, shape.outputs, shape.inputs);
  if (!shape.bias.empty() && tensors_.has(shape.bias)) packed.bias = bias(shape, whole);
  return packed;
}

// `values`: [outputs, inputs].
LayerMatrix EncoderLoader::pack(const float* values, std::int64_t outputs, std::int64_t inputs) {
  if (error) return {};
  const bool coded = type_ != kernels::WeightType::kF32 && inputs % kernels::weight_format(type_)->block_values == 0;
  const auto type = coded ? type_ : kernels::WeightType::kF32;
  const std::size_t bytes = table_.packed_bytes(type, outputs, inputs);
  auto storage = files::Mapping::reserve(bytes, "an encoder's weights", files::HugePages::kTransparent);
  if (!storage) {
    error = storage.error();
    return {};
  }
  LayerMatrix packed{.matrix = {type, outputs, inputs, storage->data()}, .bias = {}, .storage = std::move(*storage)};
  const auto* stored = reinterpret_cast<const std::byte*>(values);
  std::vector<std::byte> encoded;
  if (coded) {
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), inputs);
    encoded.resize(static_cast<std::size_t>(outputs) * row_bytes);
    for (std::int64_t row = 0; row < outputs; ++row)
      kernels::encode_row(type, values + row * inputs, inputs, encoded.data() + static_cast<std::size_t>(row) * row_bytes);
    stored = encoded.data();
  }
  table_.pack(type, stored, outputs, inputs, packed.storage.data(), 0, packed.matrix.panels());
  into_.bytes += bytes;
  return packed;
}

EncoderExpertsWeights EncoderLoader::experts(const EncoderExperts& shape, std::int64_t width, std::int64_t inner) {
  EncoderExpertsWeights weights;
  weights.router = linear(shape.router);
  const std::vector<float> up = need(shape.up, {shape.count * inner, width});
  const std::vector<float> down = need(shape.down, {shape.count * inner, width});
  if (tensors_.has(shape.bias)) weights.bias = need(shape.bias, {width});
  std::vector<float> turned(static_cast<std::size_t>(inner * width));
  for (std::int32_t i = 0; i < shape.count && !error; ++i) {
    const std::int64_t first = i * inner * width;
    weights.up.push_back(pack(up.data() + first, inner, width));
    for (std::int64_t r = 0; r < inner; ++r)
      for (std::int64_t c = 0; c < width; ++c)
        turned[static_cast<std::size_t>(c * inner + r)] = down[static_cast<std::size_t>(first + r * width + c)];
    weights.down.push_back(pack(turned.data(), width, inner));
  }
  return weights;
}

std::vector<float> EncoderLoader::bias(const EncoderLinear& shape, bool whole) {
  auto tensor = tensors_.read(shape.bias);
  if (!tensor) {
    error = tensor.error();
    return {};
  }
  const auto size = static_cast<std::int64_t>(tensor->values.size());
  if (size < shape.first + shape.outputs || (whole && tensor->shape.size() != 1)) {
    error = Error{
        ErrorCode::kBadFile, fmt::format("the tensor '{}' has {} values; expected {}", shape.bias, size, shape.first + shape.outputs), {}};
    return {};
  }
  into_.parameters += shape.outputs;
  const auto begin = tensor->values.begin() + shape.first;
  return {begin, begin + shape.outputs};
}

EncoderLayerWeights EncoderLoader::layer(const EncoderLayer& layer, const EncoderShape& shape) {
  EncoderLayerWeights weights;
  weights.before_attention = norm(layer.before_attention, shape.width);
  weights.query_norm = norm(layer.query_norm, shape.head_dim);
  weights.key_norm = norm(layer.key_norm, shape.head_dim);
  weights.after_attention = norm(layer.after_attention, shape.width);
  weights.joined_attention = norm(layer.joined_attention, shape.width);
  weights.before_feed_forward = norm(layer.before_feed_forward, shape.width);
  weights.after_feed_forward = norm(layer.after_feed_forward, shape.width);
  weights.joined_feed_forward = norm(layer.joined_feed_forward, shape.width);
  weights.query = linear(layer.query);
  weights.key = linear(layer.key);
  weights.value = linear(layer.value);
  weights.out = linear(layer.out);
  if (layer.experts.count > 0) {
    weights.experts = experts(layer.experts, shape.width, layer.up.outputs);
    return weights;
  }
  weights.gate = linear(layer.gate);
  weights.up = linear(layer.up);
  weights.down = linear(layer.down);
  return weights;
}

}  // namespace braid::model
