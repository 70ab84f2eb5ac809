// Keys and values of each type as vectors of 4 floats; of kInt8 the codes, of kBF16 the first elements of 4 pairs, or with `odd` the
// second. Internal linkage only.
#pragma once

#include "kernels/kv_order.h"
#include "kernels/neon/simd.h"

namespace braid::kernels::neon {

template <KvType kType>
static inline float32x4_t load_kv(const std::byte* from, bool odd) {
  if constexpr (kType == KvType::kF32) return vld1q_f32(floats_at(from));
  if constexpr (kType == KvType::kF16) return load_halves(from);
  if constexpr (kType == KvType::kBF16) {
    const uint32x4_t high = vshlq_u32(vreinterpretq_u32_u8(vld1q_u8(bytes_at(from))), vdupq_n_s32(odd ? 0 : 16));
    return vreinterpretq_f32_u32(vandq_u32(high, vdupq_n_u32(0xFFFF0000U)));
  }
  const int8x8_t codes = vreinterpret_s8_s32(vdup_n_s32(int_at(from)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(codes))));
}

// `count` values are there, fewer than 4 at the end of a head.
template <KvType kType, bool kPartial>
static inline float32x4_t load_values(const std::byte* from, std::int64_t count, bool odd) {
  if constexpr (!kPartial) return load_kv<kType>(from, odd);
  constexpr std::int64_t kBytes = kv_element_bytes(kType) * kv_pair(kType);
  std::byte values[4 * kBytes] = {};
  __builtin_memcpy(values, from, static_cast<std::size_t>(count * kBytes));
  return load_kv<kType>(values, odd);
}

}  // namespace braid::kernels::neon
