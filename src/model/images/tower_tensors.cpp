#include "model/images/tower_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <functional>
#include <utility>

namespace braid::model {
namespace {

// Rows of heads of order.size() rows each; those behind `count` stay.
void order_heads(EncoderTensor& tensor, std::int64_t count, const std::vector<std::int32_t>& order) {
  const std::int64_t columns = static_cast<std::int64_t>(tensor.values.size()) / tensor.shape.front();
  const auto rows = static_cast<std::int64_t>(order.size());
  const std::vector<float> stored(tensor.values.begin(), tensor.values.begin() + count * columns);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t from = row / rows * rows + order[static_cast<std::size_t>(row % rows)];
    std::copy_n(stored.begin() + from * columns, columns, tensor.values.begin() + row * columns);
  }
}

std::int64_t size_from(const std::vector<std::int64_t>& shape, std::size_t first) {
  std::int64_t size = 1;
  for (std::size_t i = first; i < shape.size(); ++i) size *= shape[i];
  return size;
}

// [outputs, planes, frames, rows, columns] to [outputs, planes, rows, columns].
void add_frames(EncoderTensor& tensor) {
  const std::int64_t blocks = tensor.shape[0] * tensor.shape[1];
  const std::int64_t frames = tensor.shape[2];
  const std::int64_t pixels = tensor.shape[3] * tensor.shape[4];
  std::vector<float> sums(static_cast<std::size_t>(blocks * pixels));
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t frame = 0; frame < frames; ++frame)
      for (std::int64_t i = 0; i < pixels; ++i)
        sums[static_cast<std::size_t>(block * pixels + i)] +=
            tensor.values[static_cast<std::size_t>((block * frames + frame) * pixels + i)];
  tensor.values = std::move(sums);
  tensor.shape.erase(tensor.shape.begin() + 2);
  tensor.is_computed = true;
}

void flatten(EncoderTensor& tensor) {
  if (tensor.shape.size() == 5) add_frames(tensor);
  while (tensor.shape.size() > 1 && tensor.shape.front() == 1) tensor.shape.erase(tensor.shape.begin());
  if (tensor.shape.size() > 2) tensor.shape = {tensor.shape.front(), size_from(tensor.shape, 1)};
}

// Of each row, [outer, inner] to [inner, outer].
void turn_columns(EncoderTensor& tensor, std::int64_t outer) {
  const std::int64_t columns = tensor.shape.back();
  const std::int64_t inner = columns / outer;
  std::vector<float> row(static_cast<std::size_t>(columns));
  for (auto at = tensor.values.begin(); at != tensor.values.end(); at += columns) {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) row[static_cast<std::size_t>(i * outer + o)] = at[o * inner + i];
    std::ranges::copy(row, at);
  }
}

void transpose(EncoderTensor& tensor) {
  const std::int64_t rows = tensor.shape.front();
  const std::int64_t columns = tensor.shape.back();
  std::vector<float> turned(tensor.values.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      turned[static_cast<std::size_t>(c * rows + r)] = tensor.values[static_cast<std::size_t>(r * columns + c)];
  tensor.values = std::move(turned);
  std::swap(tensor.shape.front(), tensor.shape.back());
}

Error unfit(const std::string& name) {
  return {ErrorCode::kBadFile, fmt::format("the tensor '{}' has another shape than a tower's", name), {}};
}

}  // namespace

Result<EncoderTensor> TowerTensors::read(const std::string& name) const {
  Result<EncoderTensor> tensor = stored_.read(name);
  if (!tensor) return tensor;
  if (tensor->values.empty()) return unfit(name);
  flatten(*tensor);
  for (const TensorForm& form : forms_) {
    if (form.name != name) continue;
    if (const Result<void> applied = apply(form, *tensor); !applied) return applied.error();
  }
  return tensor;
}

Result<void> TowerTensors::apply(const TensorForm& form, EncoderTensor& tensor) const {
  if (form.kind == TensorForm::Kind::kScaledRows) {
    const Result<EncoderTensor> scales = stored_.read(form.by);
    if (!scales) return scales.error();
    if (std::cmp_not_equal(scales->values.size(), tensor.shape.front())) return unfit(form.by);
    const std::size_t columns = tensor.values.size() / scales->values.size();
    for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] *= scales->values[i / columns];
    tensor.is_computed = true;
    return {};
  }
  if (form.kind == TensorForm::Kind::kSum) {
    const Result<EncoderTensor> other = stored_.read(form.by);
    if (!other) return other.error();
    if (other->values.size() != tensor.values.size()) return unfit(form.by);
    std::ranges::transform(tensor.values, other->values, tensor.values.begin(), std::plus<>());
    tensor.is_computed = true;
    return {};
  }
  if (form.kind == TensorForm::Kind::kHeadOrder) {
    if (tensor.shape.empty() || tensor.shape.front() < form.count || form.count % static_cast<std::int64_t>(form.order.size()) != 0)
      return unfit(form.name);
    order_heads(tensor, form.count, form.order);
    return {};
  }
  if (form.kind == TensorForm::Kind::kColumns) {
    const auto size = static_cast<std::int64_t>(tensor.values.size());
    if (size % form.count != 0) return unfit(form.name);
    tensor.shape = {size / form.count, form.count};
    return {};
  }
  if (tensor.shape.size() != 2) return unfit(form.name);
  const std::int64_t columns = tensor.shape.back();
  switch (form.kind) {
    case TensorForm::Kind::kTransposed:
      transpose(tensor);
      return {};
    case TensorForm::Kind::kPixelsLast:
      if (columns % kPlanes != 0) return unfit(form.name);
      turn_columns(tensor, columns / kPlanes);
      return {};
    case TensorForm::Kind::kSquaresLast:
      if (columns % form.count != 0) return unfit(form.name);
      turn_columns(tensor, columns / form.count);
      return {};
    default:
      break;
  }
  return {};
}

}  // namespace braid::model
