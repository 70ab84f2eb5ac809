// Products of quantised weights, as packed_layout.h defines them. The integer sum of a group is exact: at most 384 * 127 * 127 * 63.
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace braid::kernels::scalar {
namespace {

// One prepared row.
struct Activations {
  const std::int8_t* codes;
  const float* scales;
  const std::int32_t* starts;
  const std::byte* sums;
};

Activations prepared_row(const std::byte* row, const PreparedLayout& layout) {
  return {reinterpret_cast<const std::int8_t*>(row), reinterpret_cast<const float*>(row + layout.scales),
          reinterpret_cast<const std::int32_t*>(row + layout.starts), row + layout.sums};
}

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

// Rows that share what is unpacked.
using Rows = std::span<const Activations>;
constexpr std::int64_t kMostRows = 32;

std::int32_t dot(const std::uint8_t* codes, const std::int8_t* x, std::int64_t count) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += codes[i] * x[i];
  return sum;
}

// Grouped types.
void sum_whole_group(const Column& w, Rows rows, std::int64_t begin, std::int64_t end, std::int32_t* totals) {
  std::uint8_t codes[kBlockValues];
  for (std::size_t r = 0; r < rows.size(); ++r) totals[r] = rows[r].starts[begin / kWideGroupBlocks];
  for (std::int64_t b = begin; b < end; ++b) {
    unpack_codes(w.form, w.layout, w.panel, b, w.lane, codes);
    for (std::size_t r = 0; r < rows.size(); ++r) totals[r] += dot(codes, rows[r].codes + b * kBlockValues, kBlockValues);
  }
}

void sum_parts(const Column& w, Rows rows, std::int64_t begin, std::int64_t end, std::int32_t* totals) {
  const int parts = w.form.codes.parts;
  const std::int64_t part_values = kBlockValues / parts;
  std::uint8_t codes[kBlockValues];
  std::fill_n(totals, rows.size(), 0);
  for (std::int64_t b = begin; b < end; ++b) {
    unpack_codes(w.form, w.layout, w.panel, b, w.lane, codes);
    for (int part = 0; part < parts; ++part) {
      const std::int64_t first = part * part_values;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const std::int32_t sum =
            rows[r].starts[b * parts + part] + dot(codes + first, rows[r].codes + b * kBlockValues + first, part_values);
        totals[r] += w.sub(b, 0, part) * sum;
      }
    }
  }
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
void multiply_groups(const Column& w, Rows rows, std::int64_t blocks, float* y) {
  std::int32_t totals[kMostRows];
  for (std::int64_t begin = 0, end = 0; begin < blocks; begin = end) {
    end = group_end(w.form.codes, begin, blocks);
    if (w.form.codes.summing == Summing::kGroup) {
      sum_whole_group(w, rows, begin, end, totals);
    } else {
      sum_parts(w, rows, begin, end, totals);
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const float scale = rows[r].scales[begin / blocks_of_group(w.form.codes)];
      y[r] = std::fma(static_cast<float>(totals[r]), w.super(begin, 0) * scale, y[r]);
      if (w.form.codes.minimums) y[r] = add_minimums(w, rows[r], scale, begin, end, y[r]);
    }
  }
}

// Blocks with a scale each.
void multiply_blocks(const Column& w, Rows rows, std::int64_t blocks, float* y) {
  std::uint8_t codes[kBlockValues];
  for (std::int64_t b = 0; b < blocks; ++b) {
    unpack_codes(w.form, w.layout, w.panel, b, w.lane, codes);
    const float scale = w.scale(b, 0);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::int32_t sum = rows[r].starts[b] + dot(codes, rows[r].codes + b * kBlockValues, kBlockValues);
      y[r] = std::fma(std::fma(std::bit_cast<float>(sum), scale, -kRoundMagic * scale), rows[r].scales[b], y[r]);
      if (w.form.codes.minimums) y[r] = std::fma(w.minimum(b, 0), reinterpret_cast<const float*>(rows[r].sums)[b], y[r]);
    }
  }
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const BlockForm& form = *block_form(w.type);
  const PanelLayout layout = panel_layout(w.type, w.inputs);
  const PreparedLayout prepared = prepared_layout(w.type, w.inputs);
  const std::int64_t blocks = w.inputs / kBlockValues;
  for (std::int64_t begin = 0; begin < args.rows; begin += kMostRows) {
    Activations x[kMostRows];
    const Rows rows(x, static_cast<std::size_t>(std::min<std::int64_t>(kMostRows, args.rows - begin)));
    for (std::size_t r = 0; r < rows.size(); ++r)
      x[r] = prepared_row(args.prepared + (begin + static_cast<std::int64_t>(r)) * prepared.bytes, prepared);
    for (std::int64_t output = panel_begin * kPanel; output < std::min(panel_end * kPanel, w.outputs); ++output) {
      const Column column{form, layout, w.data + output / kPanel * layout.bytes, output % kPanel};
      float y[kMostRows] = {};
      if (form.codes.summing == Summing::kBlock) {
        multiply_blocks(column, rows, blocks, y);
      } else {
        multiply_groups(column, rows, blocks, y);
      }
      for (std::size_t r = 0; r < rows.size(); ++r) {
        float& out = args.out[(begin + static_cast<std::int64_t>(r)) * args.out_stride + output];
        out = args.accumulate ? out + y[r] : y[r];
      }
    }
  }
}

}  // namespace braid::kernels::scalar
