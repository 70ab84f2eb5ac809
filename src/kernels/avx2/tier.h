// The AVX2 tier: AVX2, FMA and F16C. Same results as scalar/, bit for bit.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx2 {

#include "kernels/tier_functions.inc"

}  // namespace braid::kernels::avx2
