#include "kernels/half.h"
#include "kernels/rotation.h"
#include "kernels/weight_block.h"

#include <cstring>

namespace braid::kernels {
namespace {

// Every product is exact: 11 bits of a f16 scale, 7 of an integer one, 8 of a code at most with the first, 6 with both. So only the
// addition of the minimum rounds.
void dequantize_block(const BlockForm& form, const WeightBlock& block, int values, float* out) {
  const int part_values = 32 / form.codes.parts;
  float scale = form.scales == ScaleForm::kBF16 ? bf16_to_float(block.scale) : f16_to_float(block.scale);
  float minimum = form.codes.minimums ? f16_to_float(block.minimum) : 0.0F;
  for (int part = 0; part < values / part_values; ++part) {
    const float part_scale = form.scales == ScaleForm::kSub ? scale * static_cast<float>(block.scales[part]) : scale;
    const float part_minimum =
        form.codes.minimums && form.scales == ScaleForm::kSub ? minimum * static_cast<float>(block.minimums[part]) : minimum;
    for (int i = part * part_values; i < (part + 1) * part_values; ++i) {
      const int code = form.table != nullptr ? form.table[block.codes[i]] : block.codes[i];
      const float product = static_cast<float>(code - form.bias) * part_scale;
      out[i] = form.codes.minimums ? product + part_minimum : product;
    }
  }
}

}  // namespace

const WeightFormat* weight_format(WeightType type) {
  static constexpr struct {
    WeightType type;
    WeightFormat format;
  } kFormats[] = {
      {WeightType::kF32, {"F32", 1, 4}},
      {WeightType::kF16, {"F16", 1, 2}},
      {WeightType::kBF16, {"BF16", 1, 2}},
      {WeightType::kQ8_0, {"Q8_0", 32, 34}},
      {WeightType::kQ4_0, {"Q4_0", 32, 18}},
      {WeightType::kQ4_1, {"Q4_1", 32, 20}},
      {WeightType::kQ5_0, {"Q5_0", 32, 22}},
      {WeightType::kQ5_1, {"Q5_1", 32, 24}},
      {WeightType::kQ2_K, {"Q2_K", 256, 84}},
      {WeightType::kQ3_K, {"Q3_K", 256, 110}},
      {WeightType::kQ4_K, {"Q4_K", 256, 144}},
      {WeightType::kQ5_K, {"Q5_K", 256, 176}},
      {WeightType::kQ6_K, {"Q6_K", 256, 210}},
      {WeightType::kIQ4_NL, {"IQ4_NL", 32, 18}},
      {WeightType::kIQ4_XS, {"IQ4_XS", 256, 136}},
      {WeightType::kMXFP4, {"MXFP4", 32, 17}},
      {WeightType::kRotated8, {"rotated 8-bit", kRotatedValues, 66}},
  };
  for (const auto& known : kFormats) {
    if (known.type == type) return &known.format;
  }
  return nullptr;
}

void dequantize_row(WeightType type, const std::byte* row, std::int64_t columns, float* out) {
  if (const BlockForm* form = block_form(type)) {
    const WeightFormat& format = *weight_format(type);
    WeightBlock block;
    for (std::int64_t i = 0; i < columns; i += format.block_values, row += format.block_bytes) {
      split_block(type, row, block);
      dequantize_block(*form, block, format.block_values, out + i);
      if (form->codes.summing == Summing::kGroup) rotate(out + i, out + i);
    }
  } else if (type == WeightType::kF32) {
    std::memcpy(out, row, static_cast<std::size_t>(columns) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::uint16_t bits = load_half(row + 2 * i);
      out[i] = type == WeightType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
    }
  }
}

}  // namespace braid::kernels
