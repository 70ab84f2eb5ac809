// Products of many rows with quantised weights, as in prefill.
#pragma once

#include "kernels/avx512/tier.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx512 {

// From here on it pays to expand weights for several tiles of rows.
constexpr std::int64_t kManyRows = 13;
[[gnu::always_inline]] static constexpr bool takes_many_rows(std::int64_t rows) { return rows >= kManyRows; }

// Whether products of so many rows take MatmulArgs::up.
static inline bool fuses_swiglu(WeightType type, std::int64_t rows) noexcept { return is_quantized(type) && takes_many_rows(rows); }

// matmul_quantized() of many rows, which takes MatmulArgs::up.
void matmul_many_rows(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;

}  // namespace braid::kernels::avx512
