// Low-rank products, column by column.
#include "kernels/half.h"
#include "kernels/scalar/tier.h"

#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

float weight_of(const ColumnSumsArgs& args, std::int64_t at) {
  if (args.half) return bf16_to_float(load_half(args.weights + 2 * at));
  float value;
  std::memcpy(&value, args.weights + 4 * at, sizeof(value));
  return value;
}

}  // namespace

void column_sums(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) noexcept {
  for (std::size_t i = 0; i < static_cast<std::size_t>(args.count); ++i) {
    for (std::int64_t column = begin; column < end; ++column) {
      const std::int64_t at = column / kColumnGroup * args.group_stride + column % kColumnGroup;
      float chains[4] = {};
      for (std::int64_t row = 0; row < args.rows; ++row)
        chains[row % 4] = std::fma(args.x[i][row], weight_of(args, row * args.stride + at), chains[row % 4]);
      args.out[i][column - begin] = (chains[0] + chains[1]) + (chains[2] + chains[3]);
    }
  }
}

}  // namespace braid::kernels::scalar
