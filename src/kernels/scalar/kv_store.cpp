// What one token's keys and values become in the pool. kBF16: values that are infinite or NaN become the largest numbers, because tiles
// hold tokens of which some queries see nothing, and a weight of zero must remove any value. kInt8, for each group of kKvGroup values of a head:
//   scale = f16(amax / 127), code = round(x * (1 / scale)) cut to [-127, 127]; all codes are 0 where the scale rounds to 0
#include "kernels/half.h"
#include "kernels/scalar/tier.h"
#include "kernels/store_heads.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

template <class T>
void put(std::byte* base, std::int64_t i, T value) {
  std::memcpy(base + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

// Values d of one head go to base[d * stride].
void store_floats(KvType type, const float* x, std::int32_t head_dim, std::byte* base, std::int64_t stride) {
  for (std::int32_t d = 0; d < head_dim; ++d) {
    if (type == KvType::kF32) put(base, d * stride, x[d]);
    if (type == KvType::kF16) put(base, d * stride, float_to_f16(x[d]));
  }
}

void store_bf16_keys(const float* x, std::int32_t head_dim, std::byte* base, std::int64_t block_tokens) {
  for (std::int32_t d = 0; d < head_dim; ++d) put(base, d / 2 * block_tokens * 2 + d % 2, float_to_bf16(x[d]));
}

void store_bf16_values(const float* x, std::int32_t head_dim, std::byte* base) {
  for (std::int32_t d = 0; d < head_dim; ++d) put(base, std::int64_t{d} * 2, finite_bf16(float_to_bf16(x[d])));
}

// Rounds half to even; any float gives some code.
std::int8_t round_to_kv_code(float value) {
  const auto rounded = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value + kRoundMagic) - std::uint32_t{kRoundMagicBits});
  return static_cast<std::int8_t>(std::clamp(rounded, -127, 127));
}

// The scale of group g goes to scales[g * scale_stride].
void store_codes(const float* x, std::int32_t head_dim, std::byte* base, std::int64_t stride, std::byte* scales,
                 std::int64_t scale_stride) {
  for (std::int32_t begin = 0; begin < head_dim; begin += kKvGroup) {
    const std::int32_t end = std::min(head_dim, begin + kKvGroup);
    std::int32_t largest = 0;  // of the magnitudes as integers, among which those of NaNs are the largest: one makes the scale a NaN
    for (std::int32_t d = begin; d < end; ++d) largest = std::max(largest, std::bit_cast<std::int32_t>(std::fabs(x[d])));
    const std::uint16_t scale = float_to_f16(std::bit_cast<float>(largest) / 127.0F);
    const float inverse = scale == 0 ? 0.0F : 1.0F / f16_to_float(scale);
    put(scales, begin / kKvGroup * scale_stride, scale);
    for (std::int32_t d = begin; d < end; ++d) put(base, d * stride, round_to_kv_code(x[d] * inverse));
  }
}

struct Store {
  static constexpr auto floats = store_floats;
  static constexpr auto bf16_keys = store_bf16_keys;
  static constexpr auto bf16_values = store_bf16_values;
  static constexpr auto codes = store_codes;
};

}  // namespace

void kv_store(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) noexcept {
  store_heads<Store>(kv, block, slot, keys, values);
}

}  // namespace braid::kernels::scalar
