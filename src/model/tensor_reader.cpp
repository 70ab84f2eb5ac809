#include "model/tensor_reader.h"

#include "files/gguf_tensor_type.h"
#include "kernels/encode.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace braid::model {
namespace {

constexpr std::size_t kPackedAlignment = 64;

std::string type_name(std::uint32_t type) {
  const files::GgufTensorType* known = files::gguf_tensor_type(type);
  return known != nullptr ? known->name : fmt::format("number {}", type);
}

// Of a matrix the rows, of a vector the values that `bytes` hold.
bool fits_order(const files::GgufTensor& tensor, const kernels::WeightFormat& format) {
  const std::int64_t columns = tensor.shape.size() == 2 ? tensor.shape.front() : 1;
  if (columns % format.block_values != 0 || static_cast<std::int64_t>(tensor.order.size()) != tensor.shape.back()) return false;
  const std::size_t stored = tensor.bytes.size() / kernels::stored_row_bytes(format, columns);
  return std::ranges::all_of(tensor.order, [&](std::int32_t at) { return at >= 0 && static_cast<std::size_t>(at) < stored; });
}

}  // namespace

void TensorReader::fail(ErrorCode code, const std::string& tensor, const std::string& message) {
  if (!error_) error_ = Error{code, fmt::format("{}: tensor {}: {}", file_.name(), tensor, message), {}};
}

const files::GgufTensor* TensorReader::find(const std::string& name, std::initializer_list<std::int64_t> shape, Presence presence) {
  const files::GgufTensor* tensor = file_.tensor(name);
  if (tensor == nullptr) {
    if (presence == Presence::kRequired)
      fail(ErrorCode::kBadFile, name, fmt::format("is missing, expected shape [{}]", fmt::join(shape, ", ")));
    return nullptr;
  }
  if (presence == Presence::kAbsent) return nullptr;
  seen_.insert(name);
  if (!std::ranges::equal(tensor->shape, shape)) {
    fail(ErrorCode::kBadFile, name, fmt::format("found shape [{}], expected [{}]", fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")));
    return nullptr;
  }
  const kernels::WeightFormat* format = kernels::weight_format(static_cast<kernels::WeightType>(tensor->type));
  if (format == nullptr || files::gguf_tensor_type(tensor->type) == nullptr) {
    fail(ErrorCode::kUnsupported, name, fmt::format("found type {}, which this build cannot compute with", type_name(tensor->type)));
    return nullptr;
  }
  const std::int64_t columns = *shape.begin();
  const auto rows = static_cast<std::size_t>(shape.size() == 2 ? *(shape.begin() + 1) : 1);
  const bool whole = tensor->order.empty()
                         ? columns % format->block_values == 0 && tensor->bytes.size() == rows * kernels::stored_row_bytes(*format, columns)
                         : fits_order(*tensor, *format);
  if (!whole) {
    fail(ErrorCode::kBadFile, name,
         fmt::format("found {} bytes, which is not what {} rows of {} values of type {} take", tensor->bytes.size(), rows, columns,
                     format->name));
    return nullptr;
  }
  return tensor;
}

void TensorReader::vector(const std::string& name, std::int64_t size, Presence presence, std::vector<float>& out) {
  const files::GgufTensor* tensor = find(name, {size}, presence);
  if (tensor == nullptr) return;
  const auto type = static_cast<kernels::WeightType>(tensor->type);
  std::vector<float> stored(tensor->order.empty() ? static_cast<std::size_t>(size)
                                                  : tensor->bytes.size() / kernels::stored_row_bytes(*kernels::weight_format(type), 1));
  kernels::dequantize_row(type, tensor->bytes.data(), static_cast<std::int64_t>(stored.size()), stored.data());
  out.clear();
  for (const std::int32_t at : tensor->order) out.push_back(stored[static_cast<std::size_t>(at)]);
  if (tensor->order.empty()) out = std::move(stored);
  for (float& value : out) value += tensor->plus;
}

void TensorReader::table(const std::string& name, std::int64_t size, std::int64_t rows, std::vector<float>& out) {
  const files::GgufTensor* tensor = find(name, {size, rows}, Presence::kRequired);
  if (tensor == nullptr) return;
  out.resize(static_cast<std::size_t>(size * rows));
  const auto type = static_cast<kernels::WeightType>(tensor->type);
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), size);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const std::size_t from = tensor->order.empty() ? row : static_cast<std::size_t>(tensor->order[row]);
    kernels::dequantize_row(type, tensor->bytes.data() + from * row_bytes, size, out.data() + row * static_cast<std::size_t>(size));
  }
}

void TensorReader::matrix(const LinearShape& shape, kernels::PackedMatrix& out) {
  const std::int64_t stored_outputs = shape.stored_outputs > 0 ? shape.stored_outputs : shape.outputs;
  const files::GgufTensor* tensor = find(shape.name + ".weight", {shape.inputs, stored_outputs}, Presence::kRequired);
  if (tensor == nullptr) return;
  const kernels::WeightType type = packed_type(*tensor, shape.rotation);
  out = {.type = type, .outputs = shape.outputs, .inputs = shape.inputs, .data = nullptr};
  matrices_.push_back({tensor, shape.first_output, &out, packed_bytes_});
  packed_bytes_ += (table_.packed_bytes(type, shape.outputs, shape.inputs) + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

void TensorReader::bias(const LinearShape& shape, std::vector<float>& out) {
  if (shape.stored_outputs == 0) return vector(shape.name + ".bias", shape.outputs, shape.bias, out);
  std::vector<float> all;
  vector(shape.name + ".bias", shape.stored_outputs, shape.bias, all);
  if (!all.empty()) out.assign(all.begin() + shape.first_output, all.begin() + shape.first_output + shape.outputs);
}

// Rows that a type's blocks do not divide keep their own type.
kernels::WeightType TensorReader::packed_type(const files::GgufTensor& tensor, Rotation rotation) const {
  using kernels::WeightType;
  const auto fits = [&](WeightType type) { return tensor.shape.front() % kernels::weight_format(type)->block_values == 0; };
  const auto stored = static_cast<WeightType>(tensor.type);
  const bool is_float = stored == WeightType::kF32 || stored == WeightType::kF16 || stored == WeightType::kBF16;
  const WeightType type = is_float && float_type_ && fits(*float_type_) ? *float_type_ : stored;
  const bool rotated = type == WeightType::kQ8_0 && rotate_ && rotation == Rotation::kAllowed && fits(WeightType::kRotated8);
  return rotated ? WeightType::kRotated8 : type;
}

// Rows that lie in another order, or at addresses that their type does not allow (as in some safetensors), are copied first.
void TensorReader::pack_panels(const Noted& noted, std::int64_t begin, std::int64_t end, std::byte* packed) const {
  const kernels::PackedMatrix& out = *noted.out;
  const auto stored_type = static_cast<kernels::WeightType>(noted.tensor->type);
  const std::vector<std::int32_t>& order = noted.tensor->order;
  const std::byte* stored = noted.tensor->bytes.data();
  const std::size_t stored_bytes = kernels::stored_row_bytes(*kernels::weight_format(stored_type), out.inputs);
  const bool aligned = reinterpret_cast<std::uintptr_t>(stored) % alignof(float) == 0;
  if (stored_type == out.type && order.empty() && aligned)
    return table_.pack(out.type, stored + static_cast<std::size_t>(noted.first_row) * stored_bytes, out.outputs, out.inputs, packed, begin,
                       end);
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(out.type), out.inputs);
  const std::int64_t first = begin * kernels::kPanel;
  const std::int64_t rows = std::min(out.outputs, end * kernels::kPanel) - first;
  std::vector<float> values(static_cast<std::size_t>(out.inputs));
  std::vector<std::byte> encoded(static_cast<std::size_t>(rows) * row_bytes);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto index = static_cast<std::size_t>(noted.first_row + first + row);
    const std::byte* from = stored + (order.empty() ? index : static_cast<std::size_t>(order[index])) * stored_bytes;
    std::byte* to = encoded.data() + static_cast<std::size_t>(row) * row_bytes;
    if (stored_type == out.type) {
      std::memcpy(to, from, row_bytes);
    } else {
      kernels::dequantize_row(stored_type, from, out.inputs, values.data());
      kernels::encode_row(out.type, values.data(), out.inputs, to);
    }
  }
  const std::size_t panel_bytes = table_.packed_bytes(out.type, kernels::kPanel, out.inputs);
  table_.pack(out.type, encoded.data(), rows, out.inputs, packed + static_cast<std::size_t>(begin) * panel_bytes, 0, end - begin);
}

void TensorReader::refuse_others(std::string_view architecture) {
  for (const files::GgufTensor& tensor : file_.tensors())
    if (!seen_.contains(tensor.name))
      fail(ErrorCode::kUnsupported, tensor.name, fmt::format("is not part of the {} architecture as this build computes it", architecture));
}

Result<files::Mapping> TensorReader::pack(kernels::ThreadTeam& team, const files::Progress& progress, files::HugePages pages) const {
  auto mapping = files::Mapping::reserve(packed_bytes_, "weights", pages);
  if (!mapping) return mapping.error();
  for (const Noted& noted : matrices_) {
    kernels::PackedMatrix& out = *noted.out;
    std::byte* packed = mapping->data() + noted.offset;
    team.for_chunks(out.panels(), 8, [&](std::int64_t begin, std::int64_t end, int) { pack_panels(noted, begin, end, packed); });
    out.data = packed;
    file_.drop_pages(*noted.tensor);
    if (progress) progress("weights", noted.offset + table_.packed_bytes(out.type, out.outputs, out.inputs), packed_bytes_);
  }
  return mapping;
}

}  // namespace braid::model
