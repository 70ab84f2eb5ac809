// The float32 evaluation of a quantised model: the same weights, dequantised, so that activations are not quantised either.
#pragma once

#include <kernels/kernel_table.h>
#include <kernels/thread_team.h>
#include <model/weights.h>

namespace braid::perf {

// Every matrix of `weights` as F32, packed by the same tier, in memory of its own.
Result<model::Weights> dense_weights(const model::Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team);

}  // namespace braid::perf
