#include "model/encoders/encoder_products.h"

#include <algorithm>
#include <cstddef>

namespace braid::model {
namespace {

float* with_room(std::vector<float>& values, std::int64_t count) {
  if (values.size() < static_cast<std::size_t>(count)) values.resize(static_cast<std::size_t>(count));
  return values.data();
}

}  // namespace

void EncoderProducts::add(const TaskMatrices& low_rank, float scale, const float* x, std::int64_t rows, float* out) {
  float* const low = with_room(low_, rows * low_rank.down.matrix.outputs);
  float* const added = with_room(added_, rows * low_rank.up.matrix.outputs);
  products_.multiply(low_rank.down, x, rows, low);
  products_.multiply(low_rank.up, low, rows, added);
  const std::int64_t count = rows * low_rank.up.matrix.outputs;
  if (scale != 1.0F) std::transform(added, added + count, added, [scale](float value) { return value * scale; });
  products_.table().add(out, added, count);
}

// Rows of one set, whose product with the base's matrix has no bias yet.
void EncoderProducts::adapt(const LayerMatrix& matrix, const EncoderAdapterSet* set, const float* x, std::int64_t rows, float* out) {
  const std::int64_t outputs = matrix.matrix.outputs;
  const std::vector<float>* bias = &matrix.bias;
  for (std::size_t i = 0; set != nullptr && i < set->parts.size(); ++i) {
    const EncoderAdapterSet::Part& part = set->parts[i];
    const AdaptedEncoderMatrix* own = part.adapter->find(matrix.matrix.number);
    if (own == nullptr) continue;
    if (own->replacement.matrix.outputs > 0) products_.multiply_alone(own->replacement, x, rows, out);
    if (own->low_rank.up.matrix.outputs > 0) add(own->low_rank, part.scale, x, rows, out);
    for (std::int64_t i_out = 0; !own->magnitude.empty() && i_out < rows * outputs; ++i_out)
      out[i_out] *= own->magnitude[static_cast<std::size_t>(i_out % outputs)];
    if (own->bias) bias = &*own->bias;
  }
  if (bias->empty()) return;
  for (std::int64_t row = 0; row < rows; ++row) products_.table().add(out + row * outputs, bias->data(), outputs);
}

void EncoderProducts::multiply(const LayerMatrix& matrix, const float* x, std::int64_t rows, float* out, RowAdapters of) {
  const std::uint32_t number = matrix.matrix.number;
  const bool is_adapted =
      std::ranges::any_of(of, [number](const EncoderAdapterSet* set) { return set != nullptr && set->changes(number); });
  if (!is_adapted) return products_.multiply(matrix, x, rows, out);
  products_.multiply_alone(matrix, x, rows, out);
  for_runs(of, [&](std::int64_t first, std::int64_t end, const EncoderAdapterSet* set) {
    adapt(matrix, set, x + first * matrix.matrix.inputs, end - first, out + first * matrix.matrix.outputs);
  });
}

}  // namespace braid::model
