#include "kernels/avx2/simd.h"
#include "kernels/avx2/tier.h"
#include "kernels/recurrence_columns.h"

namespace braid::kernels::avx2 {
namespace {

struct Floats {
  using Type = __m256;
  static constexpr std::int64_t kLanes = 8;
  static Type load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Type x) { _mm256_storeu_ps(to, x); }
  static Type spread(float x) { return _mm256_set1_ps(x); }
  static Type multiply(Type a, Type b) { return _mm256_mul_ps(a, b); }
  static Type fused(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
  static Type silu(Type x) { return _mm256_div_ps(x, _mm256_add_ps(spread(1.0F), exp(_mm256_sub_ps(spread(0.0F), x)))); }
};

struct OneFloat {
  using Type = float;
  static constexpr std::int64_t kLanes = 1;
  static float load(const float* from) { return *from; }
  static void store(float* to, float x) { *to = x; }
  static float spread(float x) { return x; }
  static float multiply(float a, float b) { return a * b; }
  static float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float silu(float x) { return _mm256_cvtss_f32(Floats::silu(Floats::spread(x))); }
};

using Columns = RecurrenceColumns<Floats, OneFloat>;

}  // namespace

void convolve(const ConvolutionArgs& args, std::int64_t begin, std::int64_t end) noexcept { Columns::convolve(args, begin, end); }
void selective_scan(const SelectiveScanArgs& args) noexcept { Columns::scan(args); }
void delta_rule(const DeltaRuleArgs& args) noexcept { Columns::delta_rule(args); }

}  // namespace braid::kernels::avx2
