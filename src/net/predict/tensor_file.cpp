#include "net/predict/tensor_file.h"

#include "braid/value.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/predict/tensor_json.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <limits>

namespace braid::net::predict {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they are");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostHeader = std::size_t{1} << 20;

std::uint64_t header_length(std::string_view body) {
  std::uint64_t length = 0;
  std::memcpy(&length, body.data(), kLengthBytes);
  return length;
}

std::size_t bytes_of(ElementType type) { return type == ElementType::kFloat32 ? sizeof(float) : sizeof(std::int64_t); }

// How an entry holds its values: I32 becomes int64.
struct StoredType {
  ElementType type = ElementType::kFloat32;
  bool is_narrow = false;

  std::int64_t bytes() const { return is_narrow ? 4 : static_cast<std::int64_t>(bytes_of(type)); }
};

Result<StoredType> read_dtype(const Value& entry, const std::string& path) {
  const Value* dtype = entry.find("dtype");
  if (dtype == nullptr) return invalid_argument(fmt::format("'{}' has no dtype", path), path);
  const auto name = json::read_string(*dtype, json::at_key(path, "dtype"));
  if (!name) return name.error();
  if (*name == "F32") return StoredType{ElementType::kFloat32, false};
  if (*name == "I64") return StoredType{ElementType::kInt64, false};
  if (*name == "I32") return StoredType{ElementType::kInt64, true};
  return invalid_argument(fmt::format("'{}' is of type {}; expected F32, I64 or I32", path, *name), json::at_key(path, "dtype"));
}

// A list of numbers that are not negative.
Result<std::vector<std::int64_t>> read_numbers(const Value& entry, std::string_view key, const std::string& path) {
  const std::string own = json::at_key(path, key);
  const Value* value = entry.find(key);
  const auto* list = value != nullptr ? value->get_if<ValueList>() : nullptr;
  if (list == nullptr) return invalid_argument(fmt::format("'{}' is no list of numbers", own), own);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto number = json::read_integer((*list)[i], json::at_index(own, i), 0);
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  return numbers;
}

// `left`: bytes of data that no entry before has taken, so that copies are no larger than the body.
Result<Tensor> read_entry(const Value& entry, std::string_view data, std::int64_t& left, const std::string& path) {
  const auto type = read_dtype(entry, path);
  if (!type) return type.error();
  const auto shape = read_numbers(entry, "shape", path);
  if (!shape) return shape.error();
  const auto offsets = read_numbers(entry, "data_offsets", path);
  if (!offsets) return offsets.error();
  const auto size = static_cast<std::int64_t>(data.size());
  if (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] || (*offsets)[1] > size)
    return invalid_argument(fmt::format("'{}' lies outside the {} bytes of data", path, size), json::at_key(path, "data_offsets"));
  std::int64_t values = 1;
  for (const std::int64_t extent : *shape) {
    if (extent == 0) return invalid_argument(fmt::format("'{}' has a size of 0", path), json::at_key(path, "shape"));
    if (extent > size / values + 1)
      return invalid_argument(fmt::format("'{}' has more values than bytes", path), json::at_key(path, "shape"));
    values *= extent;
  }
  const std::int64_t bytes = (*offsets)[1] - (*offsets)[0];
  if (bytes != values * type->bytes())
    return invalid_argument(fmt::format("'{}' has {} bytes; its shape takes {}", path, bytes, values * type->bytes()),
                            json::at_key(path, "data_offsets"));
  if (bytes > left) return invalid_argument(fmt::format("'{}' overlaps another tensor", path), json::at_key(path, "data_offsets"));
  left -= bytes;
  if (type->is_narrow) return widened(*shape, data.data() + (*offsets)[0]);
  Tensor tensor = Tensor::zeros(type->type, *shape);
  void* const to = type->type == ElementType::kFloat32 ? static_cast<void*>(tensor.floats.data()) : tensor.integers.data();
  std::memcpy(to, data.data() + (*offsets)[0], static_cast<std::size_t>(bytes));
  return tensor;
}

}  // namespace

bool is_tensor_file(std::string_view body) {
  return body.size() > kLengthBytes && header_length(body) <= body.size() - kLengthBytes && body[kLengthBytes] == '{';
}

Result<TensorFile> read_tensor_file(std::string_view body) {
  const std::uint64_t length = header_length(body);
  if (length > kMostHeader)
    return invalid_argument(fmt::format("the header of the tensors has {} bytes; at most {} may be given", length, kMostHeader));
  std::string header(body.substr(kLengthBytes, length));
  const Result<Value> document = json::parse_object(header);
  if (!document) return document.error();
  const std::string_view data = body.substr(kLengthBytes + length);
  auto left = static_cast<std::int64_t>(data.size());
  TensorFile file;
  for (const auto& [name, entry] : *document->get_if<ValueDict>()) {
    if (name != "__metadata__") {
      auto tensor = read_entry(entry, data, left, json::at_key("inputs", name));
      if (!tensor) return tensor.error();
      file.tensors.emplace_back(name, std::move(*tensor));
      continue;
    }
    const auto* members = entry.get_if<ValueDict>();
    if (members == nullptr) return json::wrong_type("__metadata__", "an object of texts", entry);
    for (const auto& [key, value] : *members) {
      auto text = json::read_string(value, json::at_key("__metadata__", key));
      if (!text) return text.error();
      file.metadata.emplace_back(key, std::move(*text));
    }
  }
  return file;
}

std::string write_tensor_file(std::span<const std::pair<std::string, std::string>> metadata, std::span<const NamedTensor> tensors) {
  std::string header = R"({"__metadata__":{)";
  for (const auto& [key, text] : metadata) {
    if (header.back() != '{') header += ',';
    header += json::quoted(key) + ":" + json::quoted(text);
  }
  header += '}';
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const bool floats = tensor->type == ElementType::kFloat32;
    const void* const values = floats ? static_cast<const void*>(tensor->floats.data()) : tensor->integers.data();
    const std::size_t bytes = (floats ? tensor->floats.size() : tensor->integers.size()) * bytes_of(tensor->type);
    fmt::format_to(std::back_inserter(header), R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json::quoted(name),
                   floats ? "F32" : "I64", fmt::join(tensor->shape, ","), data.size(), data.size() + bytes);
    data.append(static_cast<const char*>(values), bytes);
  }
  header += '}';
  header.resize((header.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  std::string out(kLengthBytes, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, kLengthBytes);
  return out + header + data;
}

}  // namespace braid::net::predict
