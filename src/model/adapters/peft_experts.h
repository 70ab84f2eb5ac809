// Parameters that have a matrix for each expert (PEFT's target_parameters): the factors of all experts lie in one pair of matrices.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "model/adapters/peft_config.h"
#include "model/adapters/stored_adapter.h"
#include "model/model_shape.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

// Whether a module's parameter is such a one.
bool is_of_experts(std::string_view module, std::string_view parameter);

// The layer that a module's name is of: its first part that is a number.
std::optional<std::size_t> layer_number_in(std::string_view module);

struct PartedExperts {
  std::vector<StoredMatrix> matrices;                // of each expert, with the names of the base's file
  std::shared_ptr<const files::ByteSource> factors;  // what they lie in
};

// `name`: of the parameter, with its module. kBadFile, kUnsupported: a sentence that names the tensor.
Result<PartedExperts> part_experts(const std::string& name, const StoredMatrix& joined, const PeftConfig& config, const ModelShape& base);

}  // namespace braid::model
