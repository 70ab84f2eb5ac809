// Encodings of stored weights. Values equal ggml's type ids, as GGUF files name them; kRotated8 is our own and in no file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

enum class WeightType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
  // 8-bit codes of rotated weights (rotation.h), blocks of 64 with an f16 scale. All blocks of a group (packed_layout.h) have the same
  // scale, as encode_row makes them, so that a group's integer sum needs no multipliers.
  kRotated8 = 0x10000,
};

// How a type is stored in a file: `block_bytes` for every `block_values` consecutive values of a row.
struct WeightFormat {
  const char* name;
  std::int32_t block_values;
  std::int32_t block_bytes;
};

// Null for a type this build cannot compute with.
const WeightFormat* weight_format(WeightType type);

// Bytes of one stored row of `columns` values; `columns` must be a multiple of block_values.
inline std::size_t stored_row_bytes(const WeightFormat& format, std::int64_t columns) {
  return static_cast<std::size_t>(columns / format.block_values) * static_cast<std::size_t>(format.block_bytes);
}

// Dequantises one stored row into floats, exactly as ggml's reference does. weight_block.h defines the types.
void dequantize_row(WeightType type, const std::byte* row, std::int64_t columns, float* out);

}  // namespace braid::kernels
