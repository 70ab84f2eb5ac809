// Magnitudes of an adapter (DoRA, Liu et al. 2024): lengths that outputs are to have, divided by those that they have.
#pragma once

#include "kernels/kernel_table.h"
#include "model/adapters/adapter.h"

#include <cstdint>

namespace braid::model {

// Of outputs [begin, end) of a matrix whose magnitudes are lengths yet: length / |W + scale up down|, where W is the base's. An output's bits
// depend on its own row alone. Any thread.
void divide_by_norms(const kernels::PackedMatrix& base, const kernels::KernelTable& table, std::int64_t begin, std::int64_t end,
                     AdaptedMatrix& matrix);

}  // namespace braid::model
