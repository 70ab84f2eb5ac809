#include "model/adapters/magnitudes.h"

#include "kernels/half.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

namespace braid::model {
namespace {

float factor_at(const LowRankFactors& factors, const std::byte* of, std::int64_t at) {
  if (factors.half) return kernels::bf16_to_float(kernels::load_half(of + 2 * at));
  float value = 0.0F;
  std::memcpy(&value, of + 4 * at, sizeof value);
  return value;
}

// [rank, stride]: as the sums of a row of the base read it.
std::vector<float> turned_down(const LowRankFactors& factors, std::int64_t stride) {
  std::vector<float> down(static_cast<std::size_t>(factors.rank * stride));
  for (std::int64_t r = 0; r < factors.rank; ++r)
    for (std::int64_t i = 0; i < factors.inputs; ++i)
      down[static_cast<std::size_t>(r * stride + i)] = factor_at(factors, factors.down, i * factors.down_stride + r);
  return down;
}

}  // namespace

void divide_by_norms(const kernels::PackedMatrix& base, const kernels::KernelTable& table, std::int64_t begin, std::int64_t end,
                     AdaptedMatrix& matrix) {
  const LowRankFactors& factors = matrix.low_rank;
  const std::int64_t stride = kernels::whole_column_groups(base.inputs);
  const std::vector<float> down = turned_down(factors, stride);
  std::vector<float> row(static_cast<std::size_t>(stride)), sum(row.size()), up(static_cast<std::size_t>(factors.rank));
  for (std::int64_t output = begin; output < end; ++output) {
    for (std::int64_t r = 0; r < factors.rank; ++r)
      up[static_cast<std::size_t>(r)] = factor_at(factors, factors.up, factors.up_place(r, output)) * factors.scale;
    table.column_sums({.x = {up.data()},
                       .weights = reinterpret_cast<const std::byte*>(down.data()),
                       .rows = factors.rank,
                       .stride = stride,
                       .out = {sum.data()}},
                      0, stride);
    table.unpack_row(base, output, row.data());
    double squares = 0.0;
    for (std::int64_t i = 0; i < base.inputs; ++i) {
      const double value = double{row[static_cast<std::size_t>(i)]} + sum[static_cast<std::size_t>(i)];
      squares += value * value;
    }
    float& magnitude = matrix.magnitude[static_cast<std::size_t>(output)];
    magnitude = squares > 0.0 ? static_cast<float>(magnitude / std::sqrt(squares)) : 0.0F;
  }
}

}  // namespace braid::model
