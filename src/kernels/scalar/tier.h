// The portable tier: the readable specification of every kernel. Compiled for any machine.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::scalar {

#include "kernels/tier_functions.inc"

}  // namespace braid::kernels::scalar
