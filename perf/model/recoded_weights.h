// A model's weights in another type: as float32, so that activations are not quantised either, or as any type that files have.
#pragma once

#include <kernels/kernel_table.h>
#include <kernels/thread_team.h>
#include <model/weights.h>

#include <cstdint>
#include <map>
#include <string>

namespace braid::perf {

// All types by their names in lower case.
const std::map<std::string, kernels::WeightType>& weight_types();

// `type`, or where rows are no multiple of its block of 256 the type with blocks of 32 that llama.cpp's quantize falls back to.
kernels::WeightType fitting_type(kernels::WeightType type, std::int64_t inputs);

// Every matrix of `weights`, dequantised and encoded as fitting_type(type), packed by the same tier in memory of its own.
Result<model::Weights> recoded_weights(const model::Weights& weights, kernels::WeightType type, const kernels::KernelTable& table,
                                       kernels::ThreadTeam& team);

}  // namespace braid::perf
