// Blocks of 256 values by plain rounding: scales follow from the largest values.
#include "kernels/encode.h"
#include "kernels/super_block_writer.h"
#include "kernels/weight_block.h"

namespace braid::kernels {
namespace {

template <int kParts>
FromMinimum<kParts> from_minimum(const float* x, float most_code, float most_scale) {
  constexpr int kValues = 256 / kParts;
  FromMinimum<kParts> block;
  float scales[kParts];
  float minimums[kParts];
  for (int part = 0; part < kParts; ++part) {
    const auto [low, high] = std::minmax_element(x + part * kValues, x + (part + 1) * kValues);
    minimums[part] = std::max(0.0F, -*low);
    scales[part] = std::max(0.0F, *high + minimums[part]) / most_code;
  }
  block.scale = largest(scales, kParts) / most_scale;
  block.minimum = largest(minimums, kParts) / most_scale;
  for (int part = 0; part < kParts; ++part) {
    block.scales[part] = code_of(scales[part], block.scale, 0.0F, most_scale);
    block.minimums[part] = code_of(minimums[part], block.minimum, 0.0F, most_scale);
    for (int i = part * kValues; i < (part + 1) * kValues; ++i) {
      const float above = x[i] + block.minimum * static_cast<float>(block.minimums[part]);
      block.codes[i] = code_of(above, block.scale * static_cast<float>(block.scales[part]), 0.0F, most_code);
    }
  }
  return block;
}

// The value furthest from zero becomes -4, so that a part's scale has either sign.
Symmetric<16> q3_k(const float* x) {
  Symmetric<16> block;
  float scales[16];
  for (int part = 0; part < 16; ++part) {
    const float* end = x + part * 16 + 16;
    scales[part] = -*std::max_element(x + part * 16, end, [](float a, float b) { return std::fabs(a) < std::fabs(b); }) / 4.0F;
  }
  block.scale = largest(scales, 16) / 31.0F;
  for (int part = 0; part < 16; ++part) {
    block.scales[part] = code_of(scales[part], block.scale, 32.0F, 63.0F);
    const float part_scale = block.scale * (static_cast<float>(block.scales[part]) - 32.0F);
    for (int i = part * 16; i < part * 16 + 16; ++i) block.codes[i] = code_of(x[i], part_scale, 4.0F, 7.0F);
  }
  return block;
}

Symmetric<16> q6_k(const float* x) {
  Symmetric<16> block;
  float scales[16];
  for (int part = 0; part < 16; ++part) scales[part] = largest(x + part * 16, 16) / 31.0F;
  block.scale = largest(scales, 16) / 127.0F;
  for (int part = 0; part < 16; ++part) {
    block.scales[part] = code_of(scales[part], block.scale, 0.0F, 127.0F);
    for (int i = part * 16; i < part * 16 + 16; ++i)
      block.codes[i] = code_of(x[i], block.scale * static_cast<float>(block.scales[part]), 32.0F, 63.0F);
  }
  return block;
}

Symmetric<8> iq4_xs(const float* x) {
  const BlockForm& form = *block_form(WeightType::kIQ4_XS);
  Symmetric<8> block;
  float scales[8];
  for (int run = 0; run < 8; ++run) scales[run] = largest(x + run * 32, 32) / 127.0F;
  block.scale = largest(scales, 8) / 31.0F;
  for (int run = 0; run < 8; ++run) {
    block.scales[run] = code_of(scales[run], block.scale, 32.0F, 63.0F);
    const float run_scale = block.scale * (static_cast<float>(block.scales[run]) - 32.0F);
    for (int i = run * 32; i < run * 32 + 32; ++i) block.codes[i] = table_code(form.table, x[i], run_scale, static_cast<float>(form.bias));
  }
  return block;
}

}  // namespace

void encode_super_block(WeightType type, const float* values, std::byte* stored) noexcept {
  const BlockWriter out(stored);
  switch (type) {
    case WeightType::kQ2_K:
      return put_q2_k(from_minimum<16>(values, 3.0F, 15.0F), out);
    case WeightType::kQ3_K:
      return put_q3_k(q3_k(values), out);
    case WeightType::kQ4_K:
      return put_k_minimum(from_minimum<8>(values, 15.0F, 63.0F), false, out);
    case WeightType::kQ5_K:
      return put_k_minimum(from_minimum<8>(values, 31.0F, 63.0F), true, out);
    case WeightType::kQ6_K:
      return put_q6_k(q6_k(values), out);
    case WeightType::kIQ4_XS:
      return put_iq4_xs(iq4_xs(values), out);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
    case WeightType::kQ8_0:
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kIQ4_NL:
    case WeightType::kMXFP4:
    case WeightType::kRotated8:
      return;
  }
}

}  // namespace braid::kernels
