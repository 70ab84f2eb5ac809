#include "model/encoders/encoder_loader.h"

#include "kernels/packed_layout.h"

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

bool EncoderLoader::has_tasks(const std::string& weight, const EncoderShape& shape) const {
  return !shape.tasks.empty() && !error && tensors_.has(part_of(weight, "0.lora_A"));
}

EncoderTable EncoderLoader::table(const std::string& name, std::int64_t least, const EncoderShape& shape) {
  const std::int64_t width = shape.embedded;
  EncoderTable loaded{rows(name, least, width), {}};
  if (!has_tasks(name, shape)) return loaded;
  const auto count = static_cast<std::int64_t>(loaded.rows.size()) / width;
  const auto tasks = static_cast<std::int64_t>(shape.tasks.size());
  const std::vector<float> of_rows = need(part_of(name, "0.lora_A"), {tasks, count, shape.task_rank});
  std::vector<float> of_width = need(part_of(name, "0.lora_B"), {tasks, shape.task_rank, width});
  for (float& value : of_width) value *= shape.task_scale;
  const auto slice = [](const std::vector<float>& values, std::int64_t index, std::int64_t size) {
    return std::vector<float>(values.begin() + index * size, values.begin() + (index + 1) * size);
  };
  for (std::int64_t task = 0; task < tasks && !error; ++task)
    loaded.tasks.push_back({slice(of_rows, task, count * shape.task_rank), slice(of_width, task, shape.task_rank * width)});
  into_.bytes += (of_rows.size() + of_width.size()) * sizeof(float);
  return loaded;
}

EncoderMatrix EncoderLoader::matrix(const EncoderLinear& own, const EncoderShape& shape) {
  EncoderMatrix loaded{linear(own), {}};
  if (!own.limits.empty()) loaded.limits = limits(own.limits);
  if (!has_tasks(own.weight, shape)) return loaded;
  const auto tensor = tensors_.read(own.weight);  // of whose rows it may have some alone
  const std::int64_t rows = tensor && !tensor->shape.empty() ? tensor->shape.front() : 0;
  const auto tasks = static_cast<std::int64_t>(shape.tasks.size());
  const std::int64_t rank = shape.task_rank;
  const std::vector<float> down = need(part_of(own.weight, "0.lora_A"), {tasks, rank, own.inputs});
  std::vector<float> up = need(part_of(own.weight, "0.lora_B"), {tasks, rows, rank});
  for (float& value : up) value *= shape.task_scale;
  for (std::int64_t task = 0; task < tasks && !error; ++task)
    loaded.tasks.push_back({pack(down.data() + task * rank * own.inputs, rank, own.inputs, kernels::WeightType::kF32),
                            pack(up.data() + (task * rows + own.first) * rank, own.outputs, rank, kernels::WeightType::kF32)});
  return loaded;
}

EncoderLimits EncoderLoader::limits(const std::string& prefix) {
  // Which a GGUF file has as a vector of one.
  const auto one = [&](const char* name) {
    if (error) return 0.0F;
    const auto tensor = tensors_.read(prefix + name);
    if (!tensor) {
      error = tensor.error();
    } else if (tensor->values.size() != 1) {
      error = Error{ErrorCode::kBadFile, fmt::format("the tensor '{}{}' is no number", prefix, name), {}};
    }
    return error ? 0.0F : tensor->values.front();
  };
  return {one("input_min"), one("input_max"), one("output_min"), one("output_max")};
}

EncoderNormWeights EncoderLoader::norm(const EncoderNorm& shape, std::int64_t width) {
  EncoderNormWeights weights;
  if (!shape) return weights;
  weights.rms = shape.rms;
  weights.weight = shape.plain ? std::vector<float>(static_cast<std::size_t>(width), 1.0F) : need(shape.weight, {width});
  for (float& value : weights.weight) value += shape.plus;
  if (!shape.bias.empty() && tensors_.has(shape.bias)) weights.bias = need(shape.bias, {width});
  if (weights.bias.empty()) weights.bias.resize(static_cast<std::size_t>(width));
  weights.number = ++into_.norms;
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
  const kernels::WeightType type = tensor->is_computed && !kernels::is_quantized(type_) ? kernels::WeightType::kF32 : type_;
  LayerMatrix packed = pack(tensor->values.data() + shape.first * shape.inputs, shape.outputs, shape.inputs, type);
  packed.matrix.number = ++into_.matrices;
  if (!shape.bias.empty() && tensors_.has(shape.bias)) packed.bias = bias(shape, whole);
  return packed;
}

// `values`: [outputs, inputs].
LayerMatrix EncoderLoader::pack(const float* values, std::int64_t outputs, std::int64_t inputs, kernels::WeightType wanted) {
  if (error) return {};
  auto packed = pack_floats(table_, wanted, values, outputs, inputs, "an encoder's weights");
  if (!packed) {
    error = packed.error();
    return {};
  }
  into_.bytes += packed->storage.size();
  return std::move(*packed);
}

EncoderExpertsWeights EncoderLoader::experts(const EncoderExperts& shape, std::int64_t width, std::int64_t inner) {
  EncoderExpertsWeights weights;
  weights.router = linear(shape.router);
  using Shape = std::vector<std::int64_t>;
  const std::vector<float> up = need(shape.up, shape.down_turned ? Shape{shape.count * inner, width} : Shape{shape.count, inner, width});
  const std::vector<float> down =
      need(shape.down, shape.down_turned ? Shape{shape.count * inner, width} : Shape{shape.count, width, inner});
  if (tensors_.has(shape.bias)) weights.bias = need(shape.bias, {width});
  std::vector<float> turned(static_cast<std::size_t>(inner * width));
  for (std::int32_t i = 0; i < shape.count && !error; ++i) {
    const std::int64_t first = i * inner * width;
    weights.up.push_back(pack(up.data() + first, inner, width, type_));
    if (!shape.down_turned) {
      weights.down.push_back(pack(down.data() + first, width, inner, type_));
      continue;
    }
    for (std::int64_t r = 0; r < inner; ++r)
      for (std::int64_t c = 0; c < width; ++c)
        turned[static_cast<std::size_t>(c * inner + r)] = down[static_cast<std::size_t>(first + r * width + c)];
    weights.down.push_back(pack(turned.data(), width, inner, type_));
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
  weights.query_norm = norm(layer.query_norm, shape.norms_all_heads ? shape.heads * shape.head_dim : shape.head_dim);
  weights.key_norm = norm(layer.key_norm, shape.norms_all_heads ? shape.kv_heads * shape.head_dim : shape.head_dim);
  weights.value_norm = norm(layer.value_norm, shape.head_dim);
  weights.after_attention = norm(layer.after_attention, shape.width);
  weights.joined_attention = norm(layer.joined_attention, shape.width);
  weights.rejoined_attention = norm(layer.rejoined_attention, shape.width);
  weights.before_feed_forward = norm(layer.before_feed_forward, shape.width);
  weights.after_feed_forward = norm(layer.after_feed_forward, shape.width);
  weights.joined_feed_forward = norm(layer.joined_feed_forward, shape.width);
  weights.query = matrix(layer.query, shape);
  weights.key = matrix(layer.key, shape);
  weights.value = matrix(layer.value, shape);
  weights.out = matrix(layer.out, shape);
  if (layer.experts.count > 0) {
    weights.experts = experts(layer.experts, shape.width, layer.up.outputs);
    return weights;
  }
  weights.gate = matrix(layer.gate, shape);
  weights.up = matrix(layer.up, shape);
  weights.down = matrix(layer.down, shape);
  return weights;
}

}  // namespace braid::model
