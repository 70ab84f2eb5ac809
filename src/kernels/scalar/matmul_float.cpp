// y[o] is one chain of fused multiply-adds over k in order, for every weight type.
#include "kernels/half.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

float weight_at(WeightType type, const std::byte* weights, std::int64_t i) {
  if (type == WeightType::kF32) {
    float value;
    std::memcpy(&value, weights + i * 4, sizeof(value));
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, weights + i * 2, sizeof(bits));
  return type == WeightType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

}  // namespace

void matmul_float(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const PanelLayout panels = panel_layout(w.type, w.inputs);
  const std::int64_t row_bytes = prepared_layout(w.type, w.inputs).bytes;
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    const std::byte* panel = w.data + p * panels.bytes;
    const std::int64_t used = std::min<std::int64_t>(kPanel, w.outputs - p * kPanel);
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const auto* x = reinterpret_cast<const float*>(args.prepared + r * row_bytes);
      float acc[kPanel] = {};
      for (std::int64_t k = 0; k < w.inputs; ++k) {
        for (std::int64_t o = 0; o < kPanel; ++o) acc[o] = std::fma(weight_at(w.type, panel, k * kPanel + o), x[k], acc[o]);
      }
      float* out = args.out + r * args.out_stride + p * kPanel;
      for (std::int64_t o = 0; o < used; ++o) out[o] = args.accumulate ? out[o] + acc[o] : acc[o];
    }
  }
}

}  // namespace braid::kernels::scalar
