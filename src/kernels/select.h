// Which tier this machine can run, and the table of one.
#pragma once

#include "kernels/kernel_table.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::kernels {

// The table of a tier, or null with `missing` naming what the machine lacks. For AMX it asks the kernel for tile state, so call it before
// any thread that computes is started.
const KernelTable* kernel_table(Isa isa, std::string& missing);

// The best tier of this machine.
const KernelTable& best_kernel_table();

// The table to take in place of `table` for a model whose matrices are F32, F16 or BF16. Where products of quantised weights round more
// than attention does, these would be rounded by attention alone.
const KernelTable& for_float_weights(const KernelTable& table);

std::optional<Isa> parse_isa(std::string_view name);  // scalar, neon, avx2, avx512, amx

}  // namespace braid::kernels
