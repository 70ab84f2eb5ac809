// Tensors that go into small networks and come out of them.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

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

// A size, or the name of one that a request chooses: the same name is the same size everywhere.
struct Extent {
  std::int64_t size = -1;  // -1: `name` has it
  std::string name;

  bool operator==(const Extent&) const = default;
};
using SymbolicShape = std::vector<Extent>;

// What an input or output of a network is.
struct TensorSignature {
  std::string name;
  ElementType type = ElementType::kFloat32;
  SymbolicShape shape;
  bool optional = false;  // zeros where a request leaves it out
};

}  // namespace braid
