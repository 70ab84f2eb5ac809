#include "model/stored_values.h"

#include "kernels/half.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <list>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

Error unfit(ErrorCode code, const std::string& file, std::string_view tensor, std::string_view what) {
  return {code, fmt::format("{}: the tensor '{}' {}", file, tensor, what), std::string(tensor)};
}

// `type`: F32, F16 or BF16.
std::vector<std::byte> stored_as(std::string_view type, const std::vector<float>& values) {
  const std::size_t bytes = type == "F32" ? sizeof(float) : sizeof(std::uint16_t);
  std::vector<std::byte> stored(values.size() * bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == "F32") {
      std::memcpy(stored.data() + i * bytes, &values[i], bytes);
    } else {
      const std::uint16_t half = type == "F16" ? kernels::float_to_f16(values[i]) : kernels::float_to_bf16(values[i]);
      std::memcpy(stored.data() + i * bytes, &half, bytes);
    }
  }
  return stored;
}

}  // namespace

std::optional<std::vector<float>> floats_of(const files::SafeTensor& tensor) {
  std::vector<float> values;
  if (tensor.dtype == "F32") {
    values.resize(tensor.bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  if (tensor.dtype != "F16" && tensor.dtype != "BF16") return std::nullopt;
  values.resize(tensor.bytes.size() / sizeof(std::uint16_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = kernels::load_half(tensor.bytes.data() + i * sizeof(bits));
    values[i] = tensor.dtype == "F16" ? kernels::f16_to_float(bits) : kernels::bf16_to_float(bits);
  }
  return values;
}

bool are_finite(kernels::WeightType type, std::span<const std::byte> bytes) {
  constexpr std::size_t kValuesTogether = 4096;  // whole blocks of any type
  constexpr std::uint32_t kInfinite = 0x7F800000U;
  const kernels::WeightFormat& format = *kernels::weight_format(type);
  std::array<float, kValuesTogether> values;
  const std::size_t bytes_each = kernels::stored_row_bytes(format, kValuesTogether);
  for (std::size_t at = 0; at < bytes.size(); at += bytes_each) {
    const std::span<const std::byte> some = bytes.subspan(at, std::min(bytes_each, bytes.size() - at));
    const std::size_t count = some.size() / static_cast<std::size_t>(format.block_bytes) * static_cast<std::size_t>(format.block_values);
    kernels::dequantize_row(type, some.data(), static_cast<std::int64_t>(count), values.data());
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFU);
    if (largest >= kInfinite) return false;
  }
  return true;
}

Result<void> hold_against(const TensorShapes& loaded, const files::SafeTensors& given, bool partial, const std::string& file) {
  for (const auto& [name, tensor] : given.tensors) {
    const auto found = loaded.find(name);
    if (found == loaded.end()) return unfit(ErrorCode::kBadFile, file, name, "is none of the model that is loaded");
    if (tensor.shape != found->second)
      return unfit(
          ErrorCode::kBadFile, file, name,
          fmt::format("has the shape [{}]; the loaded one has [{}]", fmt::join(tensor.shape, ", "), fmt::join(found->second, ", ")));
  }
  if (given.tensors.empty()) return Error{ErrorCode::kBadFile, fmt::format("{}: holds no tensors", file), {}};
  if (partial) return {};
  for (const auto& [name, shape] : loaded)
    if (!given.tensors.contains(name))
      return unfit(ErrorCode::kBadFile, file, name, "is missing: send all of them, or say that the update is partial");
  return {};
}

Result<std::vector<std::byte>> with_newer_values(const files::SafeTensors& loaded, const files::SafeTensors& given, bool partial,
                                                 const std::string& file) {
  TensorShapes shapes;
  for (const auto& [name, tensor] : loaded.tensors) shapes.emplace(name, tensor.shape);
  if (const Result<void> fits = hold_against(shapes, given, partial, file); !fits) return fits.error();
  files::SafeTensors all{{}, loaded.tensors};
  std::list<std::vector<std::byte>> rounded;  // what `all` refers to
  for (const auto& [name, tensor] : given.tensors) {
    files::SafeTensor& own = all.tensors.at(name);
    if (tensor.dtype == own.dtype) {
      own.bytes = tensor.bytes;
      continue;
    }
    const std::optional<std::vector<float>> values = floats_of(tensor);
    if (!values || !floats_of(own))
      return unfit(ErrorCode::kUnsupported, file, name,
                   fmt::format("is of type {}; the loaded one is of type {}", tensor.dtype, own.dtype));
    own.bytes = rounded.emplace_back(stored_as(own.dtype, *values));
  }
  return files::write_safetensors(all);
}

}  // namespace braid::model
