#include "model/families/selective_layers.h"

#include "model/deterministic_math.h"
#include "model/families/gguf_decoder.h"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::uint64_t kMostStateTaps = 64;

NormShape norm_of(GgufKeys& keys, const SelectiveStateShape& shape, std::int32_t index, float epsilon) {
  NormShape norm{.name = layer_tensor(index, "ssm_norm"), .width = static_cast<std::int32_t>(shape.inner()), .epsilon = epsilon};
  const files::GgufTensor* weights = keys.file().tensor(norm.name + ".weight");
  if (weights == nullptr) return norm;
  norm.kind = NormShape::Kind::kRms;
  if (weights->shape.size() != 2 || weights->shape[1] != shape.groups) return norm;
  norm.rows = shape.groups;
  norm.width /= shape.groups;
  return norm;
}

}  // namespace

SelectiveStateShape read_selective_sizes(GgufKeys& keys) {
  SelectiveStateShape shape;
  shape.heads = keys.size("ssm.time_step_rank", std::nullopt, kMaxHeads);
  const std::int32_t inner = keys.size("ssm.inner_size", std::nullopt);
  shape.head_dim = inner / shape.heads;
  shape.state = keys.size("ssm.state_size", std::nullopt, kMaxHeadDim);
  shape.groups = keys.size("ssm.group_count", 1, kMaxHeads);
  shape.taps = keys.size("ssm.conv_kernel", std::nullopt, kMostStateTaps);
  if (!keys.error && (inner % shape.heads != 0 || shape.heads % shape.groups != 0 || shape.taps < 2))
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {} for {} heads in {} groups, and {} is {}", keys.full("ssm.inner_size"), inner,
                                               shape.heads, shape.groups, keys.full("ssm.conv_kernel"), shape.taps));
  return shape;
}

bool has_selective_layer(const GgufKeys& keys, std::int32_t index) {
  return keys.file().tensor(layer_tensor(index, "ssm_in.weight")) != nullptr;
}

SelectiveStateShape selective_layer(GgufKeys& keys, SelectiveStateShape shape, std::int32_t index, const ModelShape& model) {
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(index, part), .inputs = inputs, .outputs = outputs, .bias = Presence::kOptional};
  };
  shape.input = linear("ssm_in", model.embedding, shape.inner() + shape.convolved() + shape.heads);
  shape.kernel = layer_tensor(index, "ssm_conv1d");
  shape.bias = Presence::kOptional;
  shape.step = layer_tensor(index, "ssm_dt");
  shape.decay = layer_tensor(index, "ssm_a");
  shape.skip = layer_tensor(index, "ssm_d");
  shape.norm = norm_of(keys, shape, index, model.output.norm.epsilon);
  shape.output = linear("ssm_out", shape.inner(), model.embedding);
  return shape;
}

SelectiveSize translate_selective(FolderReader& in, std::int32_t layers, const SelectiveNames& names, bool grouped) {
  const auto count = [&](std::string_view key, std::string_view name, std::optional<std::int64_t> fallback) {
    const std::int64_t value = in.config.count({name}, fallback, 1, 1 << 20);
    if (!key.empty()) in.set(key, static_cast<std::uint64_t>(value));
    return value;
  };
  SelectiveSize size;
  size.heads = count("ssm.time_step_rank", names.heads, std::nullopt);
  size.head_dim = count("", names.head_dim, 64);
  size.state = count("ssm.state_size", names.state, std::nullopt);
  size.groups = count("ssm.group_count", names.groups, 1);
  count("ssm.conv_kernel", names.taps, 4);
  in.set("ssm.inner_size", static_cast<std::uint64_t>(size.inner()));
  if (size.inner() > static_cast<std::int64_t>(kMaxDimension) || size.heads % size.groups != 0)
    in.config.fail(ErrorCode::kBadFile, fmt::format("{} heads of {} values in {} groups", size.heads, size.head_dim, size.groups));
  FolderConfig probe = in.config;  // an upper limit that is no number in JSON is none
  const std::vector<double> limits = probe.numbers("time_step_limit", 2);
  if (!probe.error && !limits.empty() && (limits.front() > 0.0 || limits.back() < 1e30))
    in.config.fail(ErrorCode::kUnsupported, "time_step_limit is set, which this build cannot compute");
  if (in.config.error) return size;
  in.squeeze("ssm_conv1d");
  for (std::int32_t i = 0; i < layers; ++i) {
    std::vector<double> decay;
    for (const float value : in.values(layer_tensor(i, "ssm_a"))) decay.push_back(-fixed_exp(static_cast<double>(value)));
    if (!decay.empty()) in.add_table(layer_tensor(i, "ssm_a"), decay, std::ssize(decay));  // one row a head, as in llama.cpp's files
    if (auto skip = in.extract(layer_tensor(i, "ssm_d"))) {
      if (skip->shape.size() == 1) skip->shape = {1, skip->shape[0]};
      in.put(std::move(*skip));
    }
    auto norm = grouped ? in.extract(layer_tensor(i, "ssm_norm.weight")) : std::nullopt;
    if (!norm) continue;
    if (norm->shape.size() == 1 && norm->shape[0] % size.groups == 0) norm->shape = {norm->shape[0] / size.groups, size.groups};
    in.put(std::move(*norm));
  }
  return size;
}

}  // namespace braid::model
