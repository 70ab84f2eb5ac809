// One token's keys and values into the pool, as scalar/kv_store.cpp defines them.
#include "kernels/avx512/simd.h"
#include "kernels/avx512/tier.h"
#include "kernels/half.h"
#include "kernels/store_heads.h"

namespace braid::kernels::avx512 {
namespace {

__m256i round_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40)));
}

__m128i round_codes(__m512 x) {
  const __m512i bits = _mm512_castps_si512(_mm512_add_ps(x, _mm512_set1_ps(kRoundMagic)));
  const __m512i rounded = _mm512_sub_epi32(bits, _mm512_set1_epi32(kRoundMagicBits));
  const __m512i cut = _mm512_max_epi32(_mm512_min_epi32(rounded, _mm512_set1_epi32(127)), _mm512_set1_epi32(-127));
  return _mm512_cvtepi32_epi8(cut);
}

// The first `count` of 16 elements of kBytes each, from a vector of them, `stride` elements apart.
template <int kBytes>
void scatter(const void* elements, std::int32_t count, std::byte* to, std::int64_t stride) {
  const auto* from = static_cast<const std::byte*>(elements);
  for (std::int32_t i = 0; i < count; ++i) __builtin_memcpy(to + i * stride * kBytes, from + i * kBytes, kBytes);
}

// One head's keys or values; value d goes to base[d * stride], with stride 1 or block_tokens.
void store_floats(KvType type, const float* x, std::int32_t head_dim, std::byte* base, std::int64_t stride) {
  for (std::int32_t d = 0; d < head_dim; d += 16) {
    const std::int32_t count = head_dim - d < 16 ? head_dim - d : 16;
    const __m512 values = _mm512_maskz_loadu_ps(first_lanes(count), x + d);
    if (type == KvType::kF32) {
      scatter<4>(x + d, count, base + d * stride * 4, stride);
      continue;
    }
    const __m256i halves = _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
    if (stride == 1) {
      _mm256_mask_storeu_epi16(base + d * 2, first_lanes(count), halves);
    } else {
      scatter<2>(&halves, count, base + d * stride * 2, stride);
    }
  }
}

void store_bf16_keys(const float* x, std::int32_t head_dim, std::byte* base, std::int64_t block_tokens) {
  for (std::int32_t d = 0; d < head_dim; d += 16, base += 8 * block_tokens * 4) {
    const std::int32_t count = head_dim - d < 16 ? head_dim - d : 16;
    const __m256i halves = round_bf16(_mm512_maskz_loadu_ps(first_lanes(count), x + d));
    scatter<4>(&halves, count / 2, base, block_tokens);
    if (count % 2 != 0)
      __builtin_memcpy(base + count / 2 * block_tokens * 4, reinterpret_cast<const std::byte*>(&halves) + (count - 1) * 2, 2);
  }
}

void store_bf16_values(const float* x, std::int32_t head_dim, std::byte* base) {
  for (std::int32_t d = 0; d < head_dim; d += 16) {
    const std::int32_t count = head_dim - d < 16 ? head_dim - d : 16;
    const __m256i halves = round_bf16(_mm512_maskz_loadu_ps(first_lanes(count), x + d));
    const __m256i magnitude = _mm256_min_epu16(_mm256_and_si256(halves, _mm256_set1_epi16(0x7FFF)), _mm256_set1_epi16(0x7F7F));
    const __m256i finite = _mm256_or_si256(magnitude, _mm256_andnot_si256(_mm256_set1_epi16(0x7FFF), halves));
    const __mmask32 first_of_pairs = 0x55555555U >> (32 - 2 * count);
    _mm512_mask_storeu_epi16(base + d * 4, first_of_pairs, _mm512_cvtepu16_epi32(finite));
  }
}

void store_codes(const float* x, std::int32_t head_dim, std::byte* base, std::int64_t stride, std::byte* scales,
                 std::int64_t scale_stride) {
  for (std::int32_t begin = 0; begin < head_dim; begin += kKvGroup) {
    const std::int32_t end = head_dim - begin < kKvGroup ? head_dim : begin + kKvGroup;
    __m512 amax = _mm512_setzero_ps();
    for (std::int32_t d = begin; d < end; d += 16) amax = larger_or_nan(_mm512_maskz_loadu_ps(first_lanes(end - d), x + d), amax);
    const std::uint16_t scale = float_to_f16(largest_or_nan(amax) / 127.0F);
    const __m512 inverse = _mm512_set1_ps(scale == 0 ? 0.0F : 1.0F / f16_to_float(scale));
    __builtin_memcpy(scales + begin / kKvGroup * scale_stride * 2, &scale, 2);
    for (std::int32_t d = begin; d < end; d += 16) {
      const std::int32_t count = end - d < 16 ? end - d : 16;
      const __m128i codes = round_codes(_mm512_mul_ps(_mm512_maskz_loadu_ps(first_lanes(count), x + d), inverse));
      if (stride == 1) {
        _mm_mask_storeu_epi8(base + d, first_lanes(count), codes);
      } else {
        scatter<1>(&codes, count, base + d * stride, stride);
      }
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

}  // namespace braid::kernels::avx512
