#include "model/networks/network_products.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace braid::model {
namespace {

constexpr std::int64_t kAloneBelow = 1 << 18;  // multiplications: to wake the team takes as long
constexpr std::int64_t kClaimedPanels = 4;
constexpr std::int64_t kClaimedRows = 8;

}  // namespace

std::byte* NetworkProducts::prepare(const kernels::PackedMatrix& matrix, const float* x, std::int64_t rows, bool is_small) {
  constexpr std::size_t kCacheLine = 64;
  std::size_t room = table_.prepared_bytes(matrix.type, matrix.inputs, rows) + kCacheLine;
  if (prepared_.size() < room) prepared_.resize(room);
  void* at = prepared_.data();
  std::align(kCacheLine, room - kCacheLine, at, room);
  auto* const prepared = static_cast<std::byte*>(at);
  const auto prepare_range = [&](std::int64_t begin, std::int64_t end, int) {
    table_.prepare_rows(matrix.type, x + begin * matrix.inputs, matrix.inputs, {begin, end, rows}, matrix.inputs, prepared);
  };
  if (is_small || rows < 2 * kClaimedRows) {
    prepare_range(0, rows, 0);
  } else {
    team_.for_chunks(rows, kClaimedRows, prepare_range);
  }
  return prepared;
}

void NetworkProducts::multiply(const LayerMatrix& of, std::span<const float> bias, const float* x, std::int64_t rows, float* out) {
  const kernels::PackedMatrix& matrix = of.matrix;
  const bool is_small = rows * matrix.inputs * matrix.outputs < kAloneBelow;
  const kernels::MatmulArgs args{.weights = &matrix,
                                 .prepared = prepare(matrix, x, rows, is_small),
                                 .rows = rows,
                                 .out = out,
                                 .out_stride = matrix.outputs,
                                 .side_by_side = table_.side_by_side};
  const auto multiply_panels = [&](std::int64_t begin, std::int64_t end, int) {
    kernels::PanelRange left{begin, end};
    const kernels::PanelSource once{[](void* context, kernels::PanelRange& range) {
      range = std::exchange(*static_cast<kernels::PanelRange*>(context), {});
      return range.begin < range.end;
                                    },
                                    &left};
    table_.matmul(args, once);
    if (bias.empty()) return;
    const std::int64_t first = begin * kernels::kPanel;
    const std::int64_t count = std::min(end * kernels::kPanel, matrix.outputs) - first;
    for (std::int64_t row = 0; row < rows; ++row) table_.add(out + row * matrix.outputs + first, bias.data() + first, count);
  };
  if (is_small) {
    multiply_panels(0, matrix.panels(), 0);
  } else {
    team_.for_chunks(matrix.panels(), kClaimedPanels, multiply_panels);
  }
}

}  // namespace braid::model
