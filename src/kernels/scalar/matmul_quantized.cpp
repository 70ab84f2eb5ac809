// y[o]: for each K block in order, and each of its parts, y = fma(float(integer sum), weight scale * activation scale, y), and where
// the type has minimums then y = fma(weight minimum, scaled sum of activation codes, y). The integer sum is exact.
#include <kernels/numerics.h>
#include <kernels/packed_layout.h>
#include <kernels/scalar/tier.h>

#include <algorithm>
#include <cmath>

namespace braid::kernels::scalar {
namespace {

struct Activations {
  const std::int8_t* codes;
  const float* scales;
  const std::int32_t* starts;
  const float* sums;
};

void multiply_panel(const BlockForm& form, const std::byte* panel, const PanelLayout& layout, const Activations& x,
                    std::int64_t blocks, std::int64_t used, float* acc) {
  const int parts = form.codes.parts;
  const int part_values = static_cast<int>(kBlockValues) / parts;
  std::uint8_t codes[kBlockValues];
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t o = 0; o < used; ++o) {
      unpack_codes(form, layout, panel, b, o, codes);
      for (int part = 0; part < parts; ++part) {
        std::int32_t sum = x.starts[b * parts + part];
        for (int i = part * part_values; i < (part + 1) * part_values; ++i) sum += codes[i] * x.codes[b * kBlockValues + i];
        const float scale = unpack_scale(form, layout, panel, b, part, o) * x.scales[b];
        acc[o] = std::fma(static_cast<float>(sum), scale, acc[o]);
        if (form.minimum) acc[o] = std::fma(unpack_minimum(form, layout, panel, b, part, o), x.sums[b * parts + part], acc[o]);
      }
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
                          reinterpret_cast<const std::int32_t*>(row + rows.starts), reinterpret_cast<const float*>(row + rows.sums)};
      float acc[kPanel] = {};
      multiply_panel(*block_form(w.type), w.data + p * layout.bytes, layout, x, w.inputs / kBlockValues, used, acc);
      float* out = args.out + r * args.out_stride + p * kPanel;
      for (std::int64_t o = 0; o < used; ++o) out[o] = args.accumulate ? out[o] + acc[o] : acc[o];
    }
  }
}

}  // namespace braid::kernels::scalar
