// One token's keys and values into the pool, as scalar/kv_store.cpp defines them.
#include "kernels/avx2/simd.h"
#include "kernels/avx2/tier.h"
#include "kernels/half.h"
#include "kernels/store_heads.h"

namespace braid::kernels::avx2 {
namespace {

// The first `count` values; 0 in the other lanes.
__m256 load_floats(const float* from, std::int32_t count) { return _mm256_maskload_ps(from, first_lanes(count)); }

// Two bytes of each of eight 32-bit integers that fit.
__m128i narrow(__m256i x) { return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)); }

__m128i round_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return narrow(_mm256_blendv_epi8(rounded, quiet, nan));
}

// Eight codes in the low half.
__m128i round_codes(__m256 x) {
  const __m256i bits = _mm256_castps_si256(_mm256_add_ps(x, _mm256_set1_ps(kRoundMagic)));
  const __m256i rounded = _mm256_sub_epi32(bits, _mm256_set1_epi32(kRoundMagicBits));
  const __m256i cut = _mm256_max_epi32(_mm256_min_epi32(rounded, _mm256_set1_epi32(127)), _mm256_set1_epi32(-127));
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(cut), _mm256_extracti128_si256(cut, 1));
  return _mm_packs_epi16(words, words);
}

// The first `count` of 8 elements of kBytes each, from a vector of them, `stride` elements apart.
template <int kBytes>
void scatter(const void* elements, std::int32_t count, std::byte* to, std::int64_t stride) {
  const auto* from = static_cast<const std::byte*>(elements);
  for (std::int32_t i = 0; i < count; ++i) __builtin_memcpy(to + i * stride * kBytes, from + i * kBytes, kBytes);
}

// One head's keys or values; value d goes to base[d * stride], with stride 1 or block_tokens.
void store_floats(KvType type, const float* x, std::int32_t head_dim, std::byte* base, std::int64_t stride) {
  for (std::int32_t d = 0; d < head_dim; d += 8) {
    const std::int32_t count = head_dim - d < 8 ? head_dim - d : 8;
    const __m256 values = load_floats(x + d, count);
    if (type == KvType::kF32) {
      scatter<4>(x + d, count, base + d * stride * 4, stride);
      continue;
    }
    const __m128i halves = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
    scatter<2>(&halves, count, base + d * stride * 2, stride);
  }
}

void store_bf16_keys(const float* x, std::int32_t head_dim, std::byte* base, std::int64_t block_tokens) {
  for (std::int32_t d = 0; d < head_dim; d += 8, base += 4 * block_tokens * 4) {
    const std::int32_t count = head_dim - d < 8 ? head_dim - d : 8;
    const __m128i halves = round_bf16(load_floats(x + d, count));
    scatter<4>(&halves, count / 2, base, block_tokens);
    if (count % 2 != 0)
      __builtin_memcpy(base + count / 2 * block_tokens * 4, reinterpret_cast<const std::byte*>(&halves) + (count - 1) * 2, 2);
  }
}

void store_bf16_values(const float* x, std::int32_t head_dim, std::byte* base) {
  for (std::int32_t d = 0; d < head_dim; d += 8) {
    const __m128i halves = round_bf16(load_floats(x + d, head_dim - d));
    const __m128i magnitude = _mm_min_epu16(_mm_and_si128(halves, _mm_set1_epi16(0x7FFF)), _mm_set1_epi16(0x7F7F));
    const __m128i finite = _mm_or_si128(magnitude, _mm_andnot_si128(_mm_set1_epi16(0x7FFF), halves));
    scatter<2>(&finite, head_dim - d < 8 ? head_dim - d : 8, base + d * 4, 2);
  }
}

void store_codes(const float* x, std::int32_t head_dim, std::byte* base, std::int64_t stride, std::byte* scales,
                 std::int64_t scale_stride) {
  for (std::int32_t begin = 0; begin < head_dim; begin += kKvGroup) {
    const std::int32_t end = head_dim - begin < kKvGroup ? head_dim : begin + kKvGroup;
    __m256i amax = _mm256_setzero_si256();
    for (std::int32_t d = begin; d < end; d += 8) amax = larger_or_nan(load_floats(x + d, end - d), amax);
    const std::uint16_t scale = float_to_f16(largest_or_nan(amax) / 127.0F);
    const __m256 inverse = _mm256_set1_ps(scale == 0 ? 0.0F : 1.0F / f16_to_float(scale));
    __builtin_memcpy(scales + begin / kKvGroup * scale_stride * 2, &scale, 2);
    for (std::int32_t d = begin; d < end; d += 8) {
      const std::int32_t count = end - d < 8 ? end - d : 8;
      const __m128i codes = round_codes(_mm256_mul_ps(load_floats(x + d, count), inverse));
      scatter<1>(&codes, count, base + d * stride, stride);
    }
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

}  // namespace braid::kernels::avx2
