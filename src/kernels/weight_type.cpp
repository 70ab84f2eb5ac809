#include <kernels/half.h>
#include <kernels/weight_type.h>

#include <cstring>

namespace braid::kernels {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Block: f16 scale, 32 signed codes. value = code * scale.
void dequantize_q8_0(const std::byte* block, float* out) {
  const float scale = f16_to_float(load<std::uint16_t>(block));
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(load<std::int8_t>(block + 2 + i)) * scale;
}

// Block: f16 scale, 16 bytes; byte i holds the code of value i in its low half and of value i + 16 in its high half.
// value = (code - 8) * scale.
void dequantize_q4_0(const std::byte* block, float* out) {
  const float scale = f16_to_float(load<std::uint16_t>(block));
  for (int i = 0; i < 16; ++i) {
    const int codes = std::to_integer<int>(block[2 + i]);
    out[i] = static_cast<float>((codes & 15) - 8) * scale;
    out[i + 16] = static_cast<float>((codes >> 4) - 8) * scale;
  }
}

}  // namespace

const WeightFormat* weight_format(WeightType type) {
  static constexpr WeightFormat kF32{"F32", 1, 4};
  static constexpr WeightFormat kF16{"F16", 1, 2};
  static constexpr WeightFormat kBF16{"BF16", 1, 2};
  static constexpr WeightFormat kQ8_0{"Q8_0", 32, 34};
  static constexpr WeightFormat kQ4_0{"Q4_0", 32, 18};
  switch (type) {
    case WeightType::kF32:
      return &kF32;
    case WeightType::kF16:
      return &kF16;
    case WeightType::kBF16:
      return &kBF16;
    case WeightType::kQ8_0:
      return &kQ8_0;
    case WeightType::kQ4_0:
      return &kQ4_0;
  }
  return nullptr;
}

void dequantize_row(WeightType type, const std::byte* row, std::int64_t columns, float* out) {
  switch (type) {
    case WeightType::kF32:
      std::memcpy(out, row, static_cast<std::size_t>(columns) * sizeof(float));
      return;
    case WeightType::kF16:
      for (std::int64_t i = 0; i < columns; ++i) out[i] = f16_to_float(load<std::uint16_t>(row + 2 * i));
      return;
    case WeightType::kBF16:
      for (std::int64_t i = 0; i < columns; ++i) out[i] = bf16_to_float(load<std::uint16_t>(row + 2 * i));
      return;
    case WeightType::kQ8_0:
      for (std::int64_t i = 0; i < columns; i += 32) dequantize_q8_0(row + i / 32 * 34, out + i);
      return;
    case WeightType::kQ4_0:
      for (std::int64_t i = 0; i < columns; i += 32) dequantize_q4_0(row + i / 32 * 18, out + i);
      return;
  }
}

}  // namespace braid::kernels
