// Products of quantised weights, as packed_layout.h defines them. The integer sum of a group is exact: at most 384 * 127 * 127 * 63.
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace braid::kernels::scalar {
namespace {

// One prepared row.
struct Activations {
  const std::int8_t* codes;
  const float* scales;
  const std::int32_t* starts;
  const std::byte* sums;
};

// One output's weights in one panel.
struct Column {
  const BlockForm& form;
  const PanelLayout& layout;
  const std::byte* panel;
  std::int64_t lane;

  float scale(std::int64_t b, int part) const { return unpack_scale(form, layout, panel, b, part, lane); }
  float minimum(std::int64_t b, int part) const { return unpack_minimum(form, layout, panel, b, part, lane); }
  std::int8_t sub(std::int64_t b, int kind, int part) const { return unpack_sub(form, layout, panel, b, kind, part, lane); }
  float super(std::int64_t b, int kind) const { return unpack_super(layout, panel, b, kind, lane); }
};

// Grouped types.
std::int32_t sum_whole_group(const Column& w, const Activations& x, std::int64_t begin, std::int64_t end) {
  std::uint8_t codes[kBlockValues];
  std::int32_t total = x.starts[begin / kWideGroupBlocks];
  for (std::int64_t b = begin; b < end; ++b) {
    unpack_codes(w.form, w.layout, w.panel, b, w.lane, codes);
    for (std::int64_t i = 0; i < kBlockValues; ++i) total += codes[i] * x.codes[b * kBlockValues + i];
  }
  return total;
}

std::int32_t sum_parts(const Column& w, const Activations& x, std::int64_t begin, std::int64_t end) {
  const int parts = w.form.codes.parts;
  const int part_values = static_cast<int>(kBlockValues) / parts;
  std::uint8_t codes[kBlockValues];
  std::int32_t total = 0;
  for (std::int64_t b = begin; b < end; ++b) {
    unpack_codes(w.form, w.layout, w.panel, b, w.lane, codes);
    for (int part = 0; part < parts; ++part) {
      std::int32_t sum = x.starts[b * parts + part];
      for (int i = part * part_values; i < (part + 1) * part_values; ++i) sum += codes[i] * x.codes[b * kBlockValues + i];
      total += w.sub(b, 0, part) * sum;
    }
  }
  return total;
}

float add_minimums(const Column& w, const Activations& x, float scale, std::int64_t begin, std::int64_t end, float y) {
  const auto* sums = reinterpret_cast<const std::int16_t*>(x.sums);
  std::int32_t total = 0;
  for (std::int64_t b = begin; b < end; ++b) {
    for (int part = 0; part < w.form.codes.parts; ++part) total += w.sub(b, 1, part) * sums[b * w.form.codes.parts + part];
  }
  return std::fma(static_cast<float>(total), w.super(begin, 1) * scale, y);
}

// Groups: integers with one float scale.
float multiply_groups(const Column& w, const Activations& x, std::int64_t blocks) {
  float y = 0.0F;
  for (std::int64_t begin = 0, end = 0; begin < blocks; begin = end) {
    end = group_end(w.form.codes, begin, blocks);
    const float scale = x.scales[begin / blocks_of_group(w.form.codes)];
    const std::int32_t sum = w.form.codes.summing == Summing::kGroup ? sum_whole_group(w, x, begin, end) : sum_parts(w, x, begin, end);
    y = std::fma(static_cast<float>(sum), w.super(begin, 0) * scale, y);
    if (w.form.codes.minimums) y = add_minimums(w, x, scale, begin, end, y);
  }
  return y;
}

// Blocks with a scale each.
float multiply_blocks(const Column& w, const Activations& x, std::int64_t blocks) {
  std::uint8_t codes[kBlockValues];
  float y = 0.0F;
  for (std::int64_t b = 0; b < blocks; ++b) {
    unpack_codes(w.form, w.layout, w.panel, b, w.lane, codes);
    std::int32_t sum = x.starts[b];
    for (std::int64_t i = 0; i < kBlockValues; ++i) sum += codes[i] * x.codes[b * kBlockValues + i];
    const float scale = w.scale(b, 0);
    y = std::fma(std::fma(std::bit_cast<float>(sum), scale, -kRoundMagic * scale), x.scales[b], y);
    if (w.form.codes.minimums) y = std::fma(w.minimum(b, 0), reinterpret_cast<const float*>(x.sums)[b], y);
  }
  return y;
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const BlockForm& form = *block_form(w.type);
  const PanelLayout layout = panel_layout(w.type, w.inputs);
  const PreparedLayout rows = prepared_layout(w.type, w.inputs);
  for (std::int64_t output = panel_begin * kPanel; output < std::min(panel_end * kPanel, w.outputs); ++output) {
    const Column column{form, layout, w.data + output / kPanel * layout.bytes, output % kPanel};
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const std::byte* row = args.prepared + r * rows.bytes;
      const Activations x{reinterpret_cast<const std::int8_t*>(row), reinterpret_cast<const float*>(row + rows.scales),
                          reinterpret_cast<const std::int32_t*>(row + rows.starts), row + rows.sums};
      const std::int64_t blocks = w.inputs / kBlockValues;
      const float y = form.codes.summing == Summing::kBlock ? multiply_blocks(column, x, blocks) : multiply_groups(column, x, blocks);
      float& out = args.out[r * args.out_stride + output];
      out = args.accumulate ? out + y : y;
    }
  }
}

}  // namespace braid::kernels::scalar
