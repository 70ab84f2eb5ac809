#include "net/predict/tensor_json.h"

#include "net/json/fields.h"
#include "net/json/write.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::net::predict {
namespace {

static_assert(std::endian::native == std::endian::little, "packed tensors are copied as they are");

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::int64_t kMostValues = std::int64_t{1} << 32;
constexpr std::size_t kMostAnswered = std::size_t{1} << 25;  // as text some hundred MB

std::size_t element_bytes(ElementType type) { return type == ElementType::kFloat32 ? sizeof(float) : sizeof(std::int64_t); }

// RFC 4648, padded. nullopt: it is none.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t group = 0;
    for (std::size_t digit = i; digit < i + 4; ++digit) {
      const bool is_padding = digit >= text.size() - padding;
      const std::size_t value = is_padding ? 0 : kDigits.find(text[digit]);
      if (value == std::string_view::npos) return std::nullopt;
      group = group << 6U | static_cast<std::uint32_t>(value);
    }
    for (unsigned shift = 24; shift > 0; shift -= 8) bytes += static_cast<char>(group >> (shift - 8) & 0xFFU);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

void append_base64(std::string& out, std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8U | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    for (std::size_t digit = 0; digit < 4; ++digit) out += digit <= part.size() ? kDigits[group >> (18U - 6U * digit) & 0x3FU] : '=';
  }
}

// Nested lists, flattened.
class ListReader {
 public:
  explicit ListReader(const TensorSignature& signature) : rank_(signature.shape.size()) { tensor_.type = signature.type; }

  Result<Tensor> read(const Value& value, const std::string& path) {
    if (const auto read = read_level(value, path, 0); !read) return read.error();
    return std::move(tensor_);
  }

 private:
  Result<void> read_level(const Value& value, const std::string& path, std::size_t level) {
    if (level == rank_) return read_number(value, path);
    const auto* list = value.get_if<ValueList>();
    if (list == nullptr) return json::wrong_type(path, fmt::format("a list, since the tensor has {} dimensions", rank_), value);
    const auto size = static_cast<std::int64_t>(list->size());
    if (level == tensor_.shape.size()) tensor_.shape.push_back(size);
    if (tensor_.shape[level] != size)
      return invalid_argument(fmt::format("'{}' has {} elements; the list before it has {}", path, size, tensor_.shape[level]), path);
    if (size == 0) return invalid_argument(fmt::format("'{}' is empty", path), path);
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (const auto read = read_level((*list)[i], json::at_index(path, i), level + 1); !read) return read.error();
    }
    return {};
  }

  Result<void> read_number(const Value& value, const std::string& path) {
    if (tensor_.type == ElementType::kInt64) {
      const auto number = json::read_integer(value, path);
      if (!number) return number.error();
      tensor_.integers.push_back(*number);
    } else {
      constexpr float kMost = std::numeric_limits<float>::max();
      const auto number = json::read_number(value, path, -kMost, kMost);
      if (!number) return number.error();
      tensor_.floats.push_back(*number);
    }
    return {};
  }

  const std::size_t rank_;
  Tensor tensor_;
};

Result<TensorShape> read_shape(const Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "a list of sizes", value);
  TensorShape shape;
  std::int64_t values = 1;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto size = json::read_integer((*list)[i], json::at_index(path, i), 1, kMostValues / values);
    if (!size) return size.error();
    shape.push_back(*size);
    values *= *size;
  }
  return shape;
}

Result<Tensor> read_packed(const ValueDict& dict, const TensorSignature& signature, const std::string& path) {
  const Value packed(dict);
  for (const auto& [key, ignored] : dict) {
    if (key != "shape" && key != "dtype" && key != "data")
      return invalid_argument(fmt::format("'{}' is not known here; expected shape, dtype and data", json::at_key(path, key)),
                              json::at_key(path, key));
  }
  for (const char* key : {"shape", "dtype", "data"}) {
    if (packed.find(key) == nullptr)
      return invalid_argument(fmt::format("'{}' is missing", json::at_key(path, key)), json::at_key(path, key));
  }
  const auto dtype = json::read_string(*packed.find("dtype"), json::at_key(path, "dtype"));
  if (!dtype) return dtype.error();
  const bool is_short = signature.type == ElementType::kInt64 && *dtype == "int32";
  if (*dtype != element_name(signature.type) && !is_short)
    return invalid_argument(fmt::format("'{}' is '{}'; expected '{}'{}", json::at_key(path, "dtype"), *dtype, element_name(signature.type),
                                        signature.type == ElementType::kInt64 ? " or 'int32'" : ""),
                            json::at_key(path, "dtype"));
  auto shape = read_shape(*packed.find("shape"), json::at_key(path, "shape"));
  if (!shape) return shape.error();
  const std::string at = json::at_key(path, "data");
  const auto text = json::read_string(*packed.find("data"), at);
  if (!text) return text.error();
  const auto bytes = decode_base64(*text);
  if (!bytes) return invalid_argument(fmt::format("'{}' is no base64", at), at);
  const auto expected = static_cast<std::size_t>(value_count(*shape)) * (is_short ? sizeof(std::int32_t) : element_bytes(signature.type));
  if (bytes->size() != expected)
    return invalid_argument(fmt::format("'{}' has {} bytes; the shape takes {}", at, bytes->size(), expected), at);
  if (is_short) return widened(std::move(*shape), bytes->data());
  Tensor tensor = Tensor::zeros(signature.type, std::move(*shape));
  void* const values = signature.type == ElementType::kFloat32 ? static_cast<void*>(tensor.floats.data()) : tensor.integers.data();
  std::memcpy(values, bytes->data(), bytes->size());
  return tensor;
}

void append_number(std::string& out, const Tensor& tensor, std::size_t i) {
  if (tensor.type == ElementType::kInt64) {
    fmt::format_to(std::back_inserter(out), "{}", tensor.integers[i]);
  } else if (std::isfinite(tensor.floats[i])) {
    json::append_float(out, tensor.floats[i]);
  } else {
    out += "null";
  }
}

// Those from value `begin` on of dimensions `level` and after; returns the value behind them.
std::size_t append_level(std::string& out, const Tensor& tensor, std::size_t level, std::size_t begin) {
  if (level == tensor.shape.size()) {
    append_number(out, tensor, begin);
    return begin + 1;
  }
  out += '[';
  for (std::int64_t i = 0; i < tensor.shape[level]; ++i) {
    if (i > 0) out += ',';
    begin = append_level(out, tensor, level + 1, begin);
  }
  out += ']';
  return begin;
}

}  // namespace

Tensor widened(TensorShape shape, const char* bytes) {
  Tensor tensor = Tensor::zeros(ElementType::kInt64, std::move(shape));
  for (std::int64_t& value : tensor.integers) {
    std::int32_t narrow = 0;
    std::memcpy(&narrow, bytes, sizeof narrow);
    value = narrow;
    bytes += sizeof narrow;
  }
  return tensor;
}

Result<Tensor> read_tensor(const Value& value, const TensorSignature& signature, const std::string& path) {
  if (const auto* dict = value.get_if<ValueDict>()) return read_packed(*dict, signature, path);
  return ListReader(signature).read(value, path);
}

Result<std::size_t> answered_numbers(std::span<const Tensor> outputs, std::string_view param) {
  std::size_t numbers = 0;
  for (const Tensor& tensor : outputs) numbers += static_cast<std::size_t>(value_count(tensor.shape));
  if (numbers <= kMostAnswered) return numbers;
  return invalid_argument(
      fmt::format("the outputs have {} numbers, and an answer at most {}: ask for fewer rows or outputs at once", numbers, kMostAnswered),
      std::string(param));
}

void append_lists(std::string& out, const Tensor& tensor) { append_level(out, tensor, 0, 0); }

void append_packed(std::string& out, const Tensor& tensor) {
  fmt::format_to(std::back_inserter(out), R"({{"shape":[{}],"dtype":"{}","data":")", fmt::join(tensor.shape, ","),
                 element_name(tensor.type));
  const bool floats = tensor.type == ElementType::kFloat32;
  const void* const values = floats ? static_cast<const void*>(tensor.floats.data()) : tensor.integers.data();
  const std::size_t count = floats ? tensor.floats.size() : tensor.integers.size();
  append_base64(out, {static_cast<const char*>(values), count * element_bytes(tensor.type)});
  out += "\"}";
}

}  // namespace braid::net::predict
