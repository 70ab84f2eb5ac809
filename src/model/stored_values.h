// Values of safetensors as floats, and newer values in the place of those that a model was loaded with.
#pragma once

#include "braid/result.h"
#include "files/safetensors.h"
#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::model {

// Of F32, F16 and BF16; nothing for other types.
std::optional<std::vector<float>> floats_of(const files::SafeTensor& tensor);

// Whether no value is infinite or no number. In whole blocks of the type.
bool are_finite(kernels::WeightType type, std::span<const std::byte> bytes);

using TensorShapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

// Whether `given` has the tensors of a model, or some of them if `partial`, with their shapes, and nothing else. `file` is its name for
// messages. kBadFile: a sentence that names the tensor, what was found and what is loaded.
Result<void> hold_against(const TensorShapes& loaded, const files::SafeTensors& given, bool partial, const std::string& file);

// The tensors of `loaded` with the values of `given`, rounded to the types that they have there, as one safetensors file. Errors as those of
// hold_against(); kUnsupported: a type.
Result<std::vector<std::byte>> with_newer_values(const files::SafeTensors& loaded, const files::SafeTensors& given, bool partial,
                                                 const std::string& file);

}  // namespace braid::model
