#include "model/networks/network_products.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace braid::model {
namespace {

constexpr std::int64_t kAloneBelow = 1 << 18;  // multiplications: to wake the team takes as long
constexpr std::int64_t kClaimedPanels = 4;

}  // namespace

std::byte* NetworkProducts::prepare(const kernels::PackedMatrix& matrix, const float* x, std::int64_t rows) {
  constexpr std::size_t kLine = 64;
  std::size_t room = table_.prepared_bytes(matrix.type, matrix.inputs, rows) + kLine;
  if (prepared_.size() < room) prepared_.resize(room);
  void* at = prepared_.data();
  std::align(kLine, room - kLine, at, room);
  auto* const prepared = static_cast<std::byte*>(at);
  table_.prepare_rows(matrix.type, x, matrix.inputs, {0, rows, rows}, matrix.inputs, prepared);
  return prepared;
}

void NetworkProducts::multiply(const LayerMatrix& of, const float* x, std::int64_t rows, float* out) {
  const kernels::PackedMatrix& matrix = of.matrix;
  const kernels::MatmulArgs args{.weights = &matrix,
                                 .prepared = prepare(matrix, x, rows),
                                 .rows = rows,
                                 .out = out,
                                 .out_stride = matrix.outputs,
                                 .side_by_side = table_.side_by_side};
  const auto multiply_panels = [&](std::int64_t begin, std::int64_t end) {
    kernels::PanelRange left{begin, end};
    const kernels::PanelSource once{[](void* context, kernels::PanelRange& range) {
      range = std::exchange(*static_cast<kernels::PanelRange*>(context), {});
      return range.begin < range.end;
                                    },
                                    &left};
    table_.matmul(args, once);
  };
  if (rows * matrix.inputs * matrix.outputs < kAloneBelow) {
    multiply_panels(0, matrix.panels());
  } else {
    team_.for_chunks(matrix.panels(), kClaimedPanels, [&](std::int64_t begin, std::int64_t end, int) { multiply_panels(begin, end); });
  }
  if (of.bias.empty()) return;
  for (std::int64_t row = 0; row < rows; ++row) table_.add(out + row * matrix.outputs, of.bias.data(), matrix.outputs);
}

}  // namespace braid::model
