#include "kernels/avx512/simd.h"
#include "kernels/avx512/tier.h"
#include "kernels/low_rank_columns.h"

namespace braid::kernels::avx512 {
namespace {

struct LowRankFloats {
  using Type = __m512;
  static constexpr std::int64_t kLanes = 16;
  static constexpr int kTogether = 4;
  static Type load(const float* from) { return _mm512_loadu_ps(from); }
  static Type load_half(const std::byte* from) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static void store(float* to, Type x) { _mm512_storeu_ps(to, x); }
  static Type spread(float x) { return _mm512_set1_ps(x); }
  static Type add(Type a, Type b) { return _mm512_add_ps(a, b); }
  static Type fused(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
};

}  // namespace

void column_sums(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) noexcept {
  LowRankColumns<LowRankFloats>::sum(args, begin, end);
}

}  // namespace braid::kernels::avx512
