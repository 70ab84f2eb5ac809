// A model's weights in another type: as float32, so that activations are not quantised either, or as any type that files have.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/weights.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace braid::perf {

// All types by their names in lower case.
const std::map<std::string, kernels::WeightType>& weight_types();

// `type`, or where rows are no multiple of its block of 256 the type with blocks of 32 that llama.cpp's quantize falls back to.
kernels::WeightType fitting_type(kernels::WeightType type, std::int64_t inputs);

// Whose type `wanted` says, with true for those of feed-forward networks: a matrix of another type is dequantised, encoded and packed by
// the same tier in memory of its own; one that has it already stays where it is, so `weights` is still needed.
using WantedType = std::function<kernels::WeightType(const kernels::PackedMatrix& matrix, bool feed_forward)>;
Result<model::Weights> recoded_weights(const model::Weights& weights, const WantedType& wanted, const kernels::KernelTable& table,
                                       kernels::ThreadTeam& team);

// All matrices as fitting_type(type).
WantedType all_as(kernels::WeightType type);

// What serving makes of a model with --fast-weights (model::Packing): rotated ones where a feed-forward network has a scale for 32 weights.
kernels::WeightType rotated(const kernels::PackedMatrix& matrix, bool feed_forward);

}  // namespace braid::perf
