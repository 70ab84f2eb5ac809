// Codes and scales of packed panels in vectors of 4 outputs: `quarter` 0 to 3 of a panel. Internal linkage only.
#pragma once

#include "kernels/neon/simd.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::neon {

// Bits of group g from its plane's vector, moved up by `up` within each byte.
template <int kBits>
[[gnu::always_inline]] static inline uint8x16_t plane_bits(uint8x16_t packed, int g, int up) {
  if constexpr (kBits == 8) {
    return packed;
  } else {
    const int shift = g / kBits * kBits - up;
    const uint8x16_t moved = vshlq_u8(packed, vdupq_n_s8(static_cast<std::int8_t>(-shift)));
    return vandq_u8(moved, vdupq_n_u8(static_cast<std::uint8_t>(((1 << kBits) - 1) << up)));
  }
}

// The codes of group g of a K block: byte 4 * o + j belongs to output o of the quarter and input 4 * g + j.
template <CodeForm kForm>
[[gnu::always_inline]] static inline uint8x16_t group_codes(const std::byte* block, int g, int quarter, uint8x16_t table) {
  const auto plane = [&](int line) { return vld1q_u8(bytes_at(block + line * 64 + quarter * 16)); };
  uint8x16_t codes = plane_bits<kForm.low_bits>(plane(g % kForm.low_bits), g, 0);
  if constexpr (kForm.table) codes = vqtbl1q_u8(table, codes);
  if constexpr (kForm.high_bits != 0) {
    codes = vorrq_u8(codes, plane_bits<kForm.high_bits>(plane(kForm.low_bits + g % kForm.high_bits), g, kForm.low_bits));
  }
  return codes;
}

// The scales of a K block, which lie at `scales`, or its minimums (`kind` 0 or 1), where one fits 32 values.
static inline float32x4_t load_scales(ScaleForm form, const std::byte* scales, int kind, int quarter) {
  const std::byte* from = scales + kind * kPanel * 2 + quarter * 8;
  return form == ScaleForm::kF16 ? load_halves(from) : load_bf16(from);
}

// The f16 scales or minimums of a group, in ScaleForm::kSub and kGroup.
static inline float32x4_t load_supers(const std::byte* group, int kind, int quarter) {
  return load_halves(group + kind * kPanel * 2 + quarter * 8);
}

// The int8 scales or minimums of one part of a K block, whose scales lie at `scales`.
template <int kParts>
[[gnu::always_inline]] static inline int32x4_t load_subs(const PanelLayout& layout, const std::byte* scales, int part, int kind,
                                                         int quarter) {
  const bool nibbles = kParts == 2 && layout.nibbles;
  const std::byte* subs = scales + (nibbles ? part : kind * kParts + part) * kPanel + quarter * 4;
  const int8x8_t bytes = vreinterpret_s8_s32(vdup_n_s32(int_at(subs)));
  if (nibbles) {
    const uint32x4_t both = vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_s8(bytes))));
    return vreinterpretq_s32_u32(kind == 0 ? vandq_u32(both, vdupq_n_u32(15)) : vshrq_n_u32(both, 4));
  }
  return vmovl_s16(vget_low_s16(vmovl_s8(bytes)));
}

}  // namespace braid::kernels::neon
