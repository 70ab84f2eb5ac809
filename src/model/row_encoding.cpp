#include "model/row_encoding.h"

#include "kernels/encode.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace braid::model {
namespace {

using kernels::WeightType;

bool orders_values(const files::GgufTensor& tensor) { return tensor.shape.size() == 1 && !tensor.order.empty(); }

std::size_t stored_row(const files::GgufTensor& tensor, std::int64_t row) {
  const bool in_order = tensor.order.empty() || orders_values(tensor);
  return static_cast<std::size_t>(in_order ? row : tensor.order[static_cast<std::size_t>(row)]);
}

bool orders_columns(const files::GgufTensor& tensor) {
  const std::int64_t columns = tensor.shape.front();
  return static_cast<std::int64_t>(tensor.columns.size()) == columns &&
         std::ranges::all_of(tensor.columns, [&](std::int32_t at) { return at >= 0 && at < columns; });
}

std::size_t row_bytes(WeightType type, std::int64_t columns) { return kernels::stored_row_bytes(*kernels::weight_format(type), columns); }

}  // namespace

std::int64_t rows_of(const files::GgufTensor& tensor) {
  std::int64_t rows = 1;
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  return rows;
}

bool has_stored_rows(const files::GgufTensor& tensor) {
  return tensor.order.empty() && tensor.columns.empty() && tensor.factors.empty() && tensor.plus == 0.0F && !tensor.coded;
}

bool is_sound(const files::GgufTensor& tensor) {
  const auto type = static_cast<WeightType>(tensor.type);
  const std::int64_t columns = orders_values(tensor) ? 1 : tensor.shape.front();
  if (columns % kernels::weight_format(type)->block_values != 0) return false;
  const std::size_t bytes = row_bytes(type, columns);
  const auto rows = static_cast<std::size_t>(orders_values(tensor) ? tensor.shape.front() : rows_of(tensor));
  const std::size_t stored = tensor.coded ? static_cast<std::size_t>(tensor.coded->rows()) : bytes == 0 ? 0 : tensor.bytes.size() / bytes;
  if (!tensor.columns.empty() && !orders_columns(tensor)) return false;
  if (tensor.factors.size() > 1 && tensor.factors.size() != rows) return false;
  if (tensor.order.empty()) return stored == rows && (tensor.coded || tensor.bytes.size() == rows * bytes);
  return tensor.order.size() == rows &&
         std::ranges::all_of(tensor.order, [&](std::int32_t at) { return at >= 0 && static_cast<std::size_t>(at) < stored; });
}

void read_row(const files::GgufTensor& tensor, std::int64_t row, std::int64_t columns, float* out) {
  const auto stored = static_cast<WeightType>(tensor.type);
  if (tensor.coded) {
    tensor.coded->read(static_cast<std::int64_t>(stored_row(tensor, row)), out);
  } else if (orders_values(tensor)) {
    std::vector<float> values(tensor.bytes.size() / row_bytes(stored, 1));
    kernels::dequantize_row(stored, tensor.bytes.data(), static_cast<std::int64_t>(values.size()), values.data());
    std::ranges::transform(tensor.order, out, [&](std::int32_t at) { return values[static_cast<std::size_t>(at)]; });
  } else {
    kernels::dequantize_row(stored, tensor.bytes.data() + stored_row(tensor, row) * row_bytes(stored, columns), columns, out);
  }
  if (!tensor.columns.empty()) {
    const std::vector<float> values(out, out + columns);
    std::ranges::transform(tensor.columns, out, [&](std::int32_t at) { return values[static_cast<std::size_t>(at)]; });
  }
  if (tensor.plus != 0.0F) std::transform(out, out + columns, out, [&](float value) { return value + tensor.plus; });
  if (tensor.factors.empty()) return;
  const float factor = tensor.factors[tensor.factors.size() == 1 ? 0 : static_cast<std::size_t>(row)];
  std::transform(out, out + columns, out, [&](float value) { return value * factor; });
}

void encode_row(const files::GgufTensor& tensor, std::int64_t row, std::int64_t columns, WeightType type, std::byte* out) {
  const bool as_stored = tensor.columns.empty() && tensor.factors.empty() && tensor.plus == 0.0F && !orders_values(tensor);
  if (static_cast<WeightType>(tensor.type) == type && as_stored) {
    if (tensor.coded) return tensor.coded->encode(static_cast<std::int64_t>(stored_row(tensor, row)), out);
    const std::size_t bytes = row_bytes(type, columns);
    std::memcpy(out, tensor.bytes.data() + stored_row(tensor, row) * bytes, bytes);
    return;
  }
  std::vector<float> values(static_cast<std::size_t>(columns));
  read_row(tensor, row, columns, values.data());
  kernels::encode_row(type, values.data(), columns, out);
}

}  // namespace braid::model
