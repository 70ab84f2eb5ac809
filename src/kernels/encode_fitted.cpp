// Blocks whose scales are searched for (fit_scales.h): first those of the parts, then the one that all share, and codes last, by what was
// really stored.
#include "kernels/encode.h"
#include "kernels/encode_block.h"
#include "kernels/fit_scales.h"
#include "kernels/super_block_writer.h"
#include "kernels/weight_block.h"

namespace braid::kernels {
namespace {

float stored_half(float value) { return f16_to_float(float_to_f16(value)); }

float mean_square(const float* x, int count) {
  float sum = 0.0F;
  for (int i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum / static_cast<float>(count);
}

// What the errors of `count` values weigh. With importance a value's own size counts for a part, so that outliers are not given up.
void weigh(const float* x, const float* importance, int count, float mean, bool by_square, float* weights) {
  for (int i = 0; i < count; ++i) {
    if (importance != nullptr) {
      weights[i] = importance[i] * std::sqrt(mean + x[i] * x[i]);
    } else {
      weights[i] = by_square ? x[i] * x[i] : std::sqrt(mean) + std::fabs(x[i]);
    }
  }
}

float sum_of(const float* weights, int count) {
  float sum = 0.0F;
  for (int i = 0; i < count; ++i) sum += weights[i];
  return sum;
}

// Codes by the block's scales, and the error that they leave.
template <int kParts>
float settle_codes(const float* x, const float* weights, float most_code, FromMinimum<kParts>& block) {
  constexpr int kValues = 256 / kParts;
  float error = 0.0F;
  for (int part = 0; part < kParts; ++part) {
    const float scale = block.scale * static_cast<float>(block.scales[part]);
    const float minimum = block.minimum * static_cast<float>(block.minimums[part]);
    for (int i = part * kValues; i < (part + 1) * kValues; ++i) {
      block.codes[i] = code_of(x[i] + minimum, scale, 0.0F, most_code);
      const float difference = scale * static_cast<float>(block.codes[i]) - minimum - x[i];
      error += weights[i] * difference * difference;
    }
  }
  return error;
}

// The two floats that suit the block's codes and small integers best.
template <int kParts>
FromMinimum<kParts> with_best_floats(const float* x, const float* weights, FromMinimum<kParts> block) {
  float scale_square = 0.0F, minimum_square = 0.0F, both = 0.0F, scale_value = 0.0F, minimum_value = 0.0F;
  for (int i = 0; i < 256; ++i) {
    const int part = i / (256 / kParts);
    const float of_scale = static_cast<float>(block.scales[part] * block.codes[i]);
    const float of_minimum = -static_cast<float>(block.minimums[part]);
    scale_square += weights[i] * of_scale * of_scale;
    minimum_square += weights[i] * of_minimum * of_minimum;
    both += weights[i] * of_scale * of_minimum;
    scale_value += weights[i] * of_scale * x[i];
    minimum_value += weights[i] * of_minimum * x[i];
  }
  const float determinant = scale_square * minimum_square - both * both;
  if (!(determinant > 0.0F)) return block;
  block.scale = stored_half((scale_value * minimum_square - minimum_value * both) / determinant);
  block.minimum = stored_half((minimum_value * scale_square - scale_value * both) / determinant);
  return block;
}

template <int kParts>
FromMinimum<kParts> fit_block(const float* x, const float* importance, float most_code, float most_scale) {
  constexpr int kValues = 256 / kParts;
  FromMinimum<kParts> block;
  float weights[256];
  float scales[kParts];
  float minimums[kParts];
  float sums[kParts];
  weigh(x, importance, 256, 2.0F * mean_square(x, 256), false, weights);
  for (int part = 0; part < kParts; ++part) {
    const AffineFit fit = fit_affine(x + part * kValues, weights + part * kValues, kValues, most_code);
    scales[part] = std::max(0.0F, fit.scale);
    minimums[part] = fit.minimum;
    sums[part] = sum_of(weights + part * kValues, kValues);
  }
  block.scale = stored_half(fit_positive(scales, sums, kParts, most_scale));
  block.minimum = stored_half(fit_positive(minimums, sums, kParts, most_scale));
  for (int part = 0; part < kParts; ++part) {
    block.scales[part] = code_of(scales[part], block.scale, 0.0F, most_scale);
    block.minimums[part] = code_of(minimums[part], block.minimum, 0.0F, most_scale);
  }
  float error = settle_codes(x, weights, most_code, block);
  for (int round = 0; round < 3; ++round) {
    FromMinimum<kParts> better = with_best_floats(x, weights, block);
    const float better_error = settle_codes(x, weights, most_code, better);
    if (!(better_error < error) || better.scale < 0.0F || better.minimum < 0.0F) break;
    block = better;
    error = better_error;
  }
  return block;
}

// The scales of parts of 16 or 32, and what each part weighs.
template <int kParts>
struct PartScales {
  float scales[kParts];
  float sums[kParts];

  template <class Fit>
  PartScales(const float* x, const float* importance, const Fit& fit) {
    constexpr int kValues = 256 / kParts;
    float weights[kValues];
    const float mean = mean_square(x, 256);
    for (int part = 0; part < kParts; ++part) {
      const int first = part * kValues;
      weigh(x + first, importance == nullptr ? nullptr : importance + first, kValues, mean, true, weights);
      scales[part] = fit(x + first, weights, kValues);
      sums[part] = sum_of(weights, kValues);
    }
  }
};

Symmetric<16> fit_q3_k(const float* x, const float* importance) {
  const PartScales<16> parts(
      x, importance, [](const float* values, const float* weights, int count) { return fit_symmetric(values, weights, count, 4.0F); });
  Symmetric<16> block;
  block.scale = stored_half(fit_symmetric(parts.scales, parts.sums, 16, 32.0F));
  for (int part = 0; part < 16; ++part) {
    block.scales[part] = code_of(parts.scales[part], block.scale, 32.0F, 63.0F);
    const float part_scale = block.scale * (static_cast<float>(block.scales[part]) - 32.0F);
    for (int i = part * 16; i < part * 16 + 16; ++i) block.codes[i] = code_of(x[i], part_scale, 4.0F, 7.0F);
  }
  return block;
}

Symmetric<16> fit_q6_k(const float* x, const float* importance) {
  const PartScales<16> parts(
      x, importance, [](const float* values, const float* weights, int count) { return fit_symmetric(values, weights, count, 32.0F); });
  Symmetric<16> block;
  const float furthest = *std::max_element(parts.scales, parts.scales + 16, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  block.scale = stored_half(furthest / -128.0F);
  for (int part = 0; part < 16; ++part) {
    const int small = static_cast<int>(code_of(parts.scales[part], block.scale, 128.0F, 255.0F)) - 128;
    block.scales[part] = static_cast<unsigned>(small);
    for (int i = part * 16; i < part * 16 + 16; ++i) block.codes[i] = code_of(x[i], block.scale * static_cast<float>(small), 32.0F, 63.0F);
  }
  return block;
}

Symmetric<8> fit_iq4_xs(const float* x, const float* importance) {
  const BlockForm& form = *block_form(WeightType::kIQ4_XS);
  const auto bias = static_cast<float>(form.bias);
  const PartScales<8> parts(x, importance, [&](const float* values, const float* weights, int count) {
    return fit_table(values, weights, count, form.table, bias);
  });
  Symmetric<8> block;
  block.scale = stored_half(fit_symmetric(parts.scales, parts.sums, 8, 32.0F));
  for (int run = 0; run < 8; ++run) {
    block.scales[run] = code_of(parts.scales[run], block.scale, 32.0F, 63.0F);
    const float run_scale = block.scale * (static_cast<float>(block.scales[run]) - 32.0F);
    for (int i = run * 32; i < run * 32 + 32; ++i) block.codes[i] = table_code(form.table, x[i], run_scale, bias);
  }
  return block;
}

void fit_super_block(WeightType type, const float* x, const float* importance, BlockWriter out) {
  if (type == WeightType::kQ2_K) return put_q2_k(fit_block<16>(x, importance, 3.0F, 15.0F), out);
  if (type == WeightType::kQ3_K) return put_q3_k(fit_q3_k(x, importance), out);
  if (type == WeightType::kQ4_K) return put_k_minimum(fit_block<8>(x, importance, 15.0F, 63.0F), false, out);
  if (type == WeightType::kQ5_K) return put_k_minimum(fit_block<8>(x, importance, 31.0F, 63.0F), true, out);
  if (type == WeightType::kQ6_K) return put_q6_k(fit_q6_k(x, importance), out);
  put_iq4_xs(fit_iq4_xs(x, importance), out);
}

// `mean`: of the squares of the whole row.
void fit_small_block(WeightType type, const float* x, const float* importance, float mean, BlockWriter out) {
  float weights[32];
  unsigned codes[32];
  weigh(x, importance, 32, mean, true, weights);
  if (type == WeightType::kIQ4_NL) {
    const BlockForm& form = *block_form(type);
    const float scale = stored_half(fit_table(x, weights, 32, form.table, static_cast<float>(form.bias)));
    for (int i = 0; i < 32; ++i) codes[i] = table_code(form.table, x[i], scale, static_cast<float>(form.bias));
    out.put_half(scale);
    return put_codes(codes, false, out);
  }
  const bool fifth_bits = type == WeightType::kQ5_0 || type == WeightType::kQ5_1;
  const float half = fifth_bits ? 16.0F : 8.0F;
  if (type == WeightType::kQ4_0 || type == WeightType::kQ5_0) {
    const float scale = stored_half(fit_symmetric(x, weights, 32, half));
    for (int i = 0; i < 32; ++i) codes[i] = code_of(x[i], scale, half, 2 * half - 1);
    out.put_half(scale);
  } else {
    const AffineFit fit = fit_affine(x, weights, 32, 2 * half - 1);
    const float scale = stored_half(fit.scale);
    const float minimum = stored_half(-fit.minimum);
    for (int i = 0; i < 32; ++i) codes[i] = code_of(x[i] - minimum, scale, 0.0F, 2 * half - 1);
    out.put_half(scale);
    out.put_half(minimum);
  }
  put_codes(codes, fifth_bits, out);
}

}  // namespace

void encode_row_fitted(WeightType type, const float* values, const float* importance, std::int64_t columns, std::byte* stored) noexcept {
  const WeightFormat& format = *weight_format(type);
  const bool super_blocks = format.block_values == 256;
  const bool only_with_importance =
      type == WeightType::kQ4_0 || type == WeightType::kQ4_1 || type == WeightType::kQ5_0 || type == WeightType::kQ5_1;
  if (!super_blocks && type != WeightType::kIQ4_NL && (!only_with_importance || importance == nullptr))
    return encode_row(type, values, columns, stored);
  const float mean = super_blocks ? 0.0F : mean_square(values, static_cast<int>(columns));
  for (std::int64_t i = 0; i < columns; i += format.block_values, stored += format.block_bytes) {
    const float* own = importance == nullptr ? nullptr : importance + i;
    if (super_blocks) {
      fit_super_block(type, values + i, own, BlockWriter(stored));
    } else {
      fit_small_block(type, values + i, own, mean, BlockWriter(stored));
    }
  }
}

}  // namespace braid::kernels
