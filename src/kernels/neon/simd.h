// Vectors of 4 floats: loads and stores of what lies in panels and pools, the lane tree and exp of numerics.h. Internal linkage only.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/numerics.h"

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

// Stores the first `count` lanes, 4 at most.
static inline void store_first(float* out, std::int64_t count, float32x4_t y) {
  if (count >= 4) return vst1q_f32(out, y);
  for (std::int64_t i = 0; i < count; ++i) out[i] = y[i];
}

// Stores the first `outputs` of 4, or adds them to what is there.
static inline void store_outputs(float* out, std::int64_t outputs, bool accumulate, float32x4_t y) {
  if (outputs >= 4) return vst1q_f32(out, accumulate ? vaddq_f32(vld1q_f32(out), y) : y);
  for (std::int64_t i = 0; i < outputs; ++i) out[i] = accumulate ? out[i] + y[i] : y[i];
}

// Lanes 0 to 3, 4 to 7 and so on of a reduction.
static inline float lane_tree(const float32x4_t (&lanes)[kLanes / 4]) {
  const float32x4_t four = vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static inline float32x4_t exp(float32x4_t x) {
  const float32x4_t highest = vdupq_n_f32(kExpHighest);
  const float32x4_t clamped = vbslq_f32(vcgtq_f32(x, highest), highest, x);
  const float32x4_t magic = vdupq_n_f32(kRoundMagic);
  const float32x4_t shifted = vfmaq_f32(magic, clamped, vdupq_n_f32(kLog2E));
  const float32x4_t n = vsubq_f32(shifted, magic);
  const float32x4_t r = vfmaq_f32(vfmaq_f32(clamped, n, vdupq_n_f32(-kLn2High)), n, vdupq_n_f32(-kLn2Low));
  float32x4_t q = vfmaq_f32(vdupq_n_f32(kExpQ3), vdupq_n_f32(kExpQ4), r);
  q = vfmaq_f32(vdupq_n_f32(kExpQ2), q, r);
  q = vfmaq_f32(vdupq_n_f32(kExpQ1), q, r);
  q = vfmaq_f32(vdupq_n_f32(kExpQ0), q, r);
  const float32x4_t one = vdupq_n_f32(1.0F);
  const float32x4_t fraction = vfmaq_f32(one, vfmaq_f32(one, q, r), r);
  const uint32x4_t power = vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23), vdupq_n_u32(0x3F800000));
  const uint32x4_t result = vreinterpretq_u32_f32(vmulq_f32(fraction, vreinterpretq_f32_u32(power)));
  return vreinterpretq_f32_u32(vbicq_u32(result, vcltq_f32(x, vdupq_n_f32(kExpLowest))));
}

}  // namespace braid::kernels::neon
