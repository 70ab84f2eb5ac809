// Vectors of 4 floats: loads and stores of what lies in panels and pools. Internal linkage only.
#pragma once

#include "kernels/kernel_table.h"

#include <arm_neon.h>
#include <cstddef>
#include <cstdint>

namespace braid::kernels::neon {

static inline const float* floats_at(const std::byte* from) { return reinterpret_cast<const float*>(from); }
static inline const std::uint8_t* bytes_at(const std::byte* from) { return reinterpret_cast<const std::uint8_t*>(from); }

static inline float32x4_t load_halves(const std::byte* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from))));
}

static inline float32x4_t load_bf16(const std::byte* from) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from)), 16));
}

static inline std::int32_t int_at(const std::byte* from) {
  std::int32_t value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

static inline float float_at(const std::byte* from) {
  float value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

// Stores the first `outputs` of 4, or adds them to what is there.
static inline void store_outputs(float* out, std::int64_t outputs, bool accumulate, float32x4_t y) {
  if (outputs >= 4) return vst1q_f32(out, accumulate ? vaddq_f32(vld1q_f32(out), y) : y);
  for (std::int64_t i = 0; i < outputs; ++i) out[i] = accumulate ? out[i] + y[i] : y[i];
}

}  // namespace braid::kernels::neon
