// The AVX-512 tier: F, BW, VL, DQ and VNNI. Same results as scalar/, bit for bit.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx512 {

#include "kernels/tier_functions.inc"

}  // namespace braid::kernels::avx512
