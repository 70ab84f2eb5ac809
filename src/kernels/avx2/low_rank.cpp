#include "kernels/avx2/simd.h"
#include "kernels/avx2/tier.h"
#include "kernels/low_rank_columns.h"

namespace braid::kernels::avx2 {
namespace {

struct LowRankFloats {
  using Type = __m256;
  static constexpr std::int64_t kLanes = 8;
  static constexpr int kTogether = 1;  // more would not stay in 16 registers
  static Type load(const float* from) { return _mm256_loadu_ps(from); }
  static Type load_half(const std::byte* from) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static void store(float* to, Type x) { _mm256_storeu_ps(to, x); }
  static Type spread(float x) { return _mm256_set1_ps(x); }
  static Type add(Type a, Type b) { return _mm256_add_ps(a, b); }
  static Type fused(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
};

}  // namespace

void column_sums(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) noexcept {
  LowRankColumns<LowRankFloats>::sum(args, begin, end);
}

}  // namespace braid::kernels::avx2
