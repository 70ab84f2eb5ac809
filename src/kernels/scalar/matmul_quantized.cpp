// y[o]: for each K block in order, y = fma(float(integer sum), weight scale * activation scale, y). The integer sum is exact.
#include <kernels/half.h>
#include <kernels/numerics.h>
#include <kernels/packed_layout.h>
#include <kernels/scalar/tier.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

struct Activations {
  const std::int8_t* codes;
  const float* scales;
  const std::int32_t* starts;
};

// Adds the products of a group: 16 outputs by 4 inputs.
void add_group(const std::uint8_t* codes, int shift, int mask, const std::int8_t* x, std::int32_t* sum) {
  for (int o = 0; o < kPanel; ++o) {
    for (int j = 0; j < 4; ++j) sum[o] += ((codes[o * 4 + j] >> shift) & mask) * x[j];
  }
}

void multiply_panel(WeightType type, const std::byte* panel, const PanelLayout& layout, const Activations& x, std::int64_t blocks,
                    float* acc) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(panel + b * layout.block_codes);
    const std::int8_t* xb = x.codes + b * kBlockValues;
    std::int32_t sum[kPanel];
    std::fill_n(sum, kPanel, x.starts[b]);
    for (int g = 0; g < 8; ++g) {
      if (type == WeightType::kQ8_0) {
        add_group(codes + g * 64, 0, 255, xb + g * 4, sum);
      } else {
        add_group(codes + g % 4 * 64, g / 4 * 4, 15, xb + g * 4, sum);
      }
    }
    for (int o = 0; o < kPanel; ++o) {
      std::uint16_t scale;
      std::memcpy(&scale, panel + layout.scales + (b * kPanel + o) * 2, sizeof(scale));
      acc[o] = std::fma(static_cast<float>(sum[o]), f16_to_float(scale) * x.scales[b], acc[o]);
    }
  }
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const PanelLayout layout = panel_layout(w.type, w.inputs);
  const PreparedLayout rows = prepared_layout(w.type, w.inputs);
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    const std::int64_t used = std::min<std::int64_t>(kPanel, w.outputs - p * kPanel);
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const std::byte* row = args.prepared + r * rows.bytes;
      const Activations x{reinterpret_cast<const std::int8_t*>(row), reinterpret_cast<const float*>(row + rows.scales),
                          reinterpret_cast<const std::int32_t*>(row + rows.starts)};
      float acc[kPanel] = {};
      multiply_panel(w.type, w.data + p * layout.bytes, layout, x, w.inputs / kBlockValues, acc);
      float* out = args.out + r * args.out_stride + p * kPanel;
      for (std::int64_t o = 0; o < used; ++o) out[o] = args.accumulate ? out[o] + acc[o] : acc[o];
    }
  }
}

}  // namespace braid::kernels::scalar
