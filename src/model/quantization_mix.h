// Which type each tensor of a quantised file has: the mixes that llama.cpp knows by name ("q4_k_m"), chosen as it chooses them.
#pragma once

#include "files/gguf.h"
#include "kernels/weight_type.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace braid::model {

struct QuantizationMix {
  std::string_view name;
  kernels::WeightType type;  // of what nothing else is said about
  std::uint32_t file_type;   // general.file_type
};

std::span<const QuantizationMix> quantization_mixes();
// Null for a name that is not known; case does not count.
const QuantizationMix* quantization_mix(std::string_view name);

// Of each tensor of `file`, in their order. Vectors, norms, positions, routers and the like keep their type. `pure`: matrices have the mix's
// own type. `has_importance`: an importance matrix is at hand.
std::vector<kernels::WeightType> types_of_mix(const files::GgufFile& file, const QuantizationMix& mix, bool pure, bool has_importance);

}  // namespace braid::model
