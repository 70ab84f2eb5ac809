// A tensor of a small network: an input, what a layer gives, or an output.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

namespace braid::model {

enum class ElementType : std::uint8_t { kFloat32, kInt64 };

constexpr std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kInt64:
      return "int64";
  }
  return "";
}

using TensorShape = std::vector<std::int64_t>;

inline std::int64_t value_count(const TensorShape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Row-major. One of the two lists holds the values, as `type` says.
struct Tensor {
  ElementType type = ElementType::kFloat32;
  TensorShape shape;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  static Tensor zeros(ElementType type, TensorShape shape) {
    Tensor tensor{.type = type, .shape = std::move(shape), .floats = {}, .integers = {}};
    const auto count = static_cast<std::size_t>(value_count(tensor.shape));
    type == ElementType::kFloat32 ? tensor.floats.resize(count) : tensor.integers.resize(count);
    return tensor;
  }

  // All but the last dimension, flattened, and the last one.
  std::int64_t width() const { return shape.back(); }
  std::int64_t rows() const { return value_count({shape.begin(), shape.end() - 1}); }
};

}  // namespace braid::model
