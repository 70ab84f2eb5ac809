// Values of what an adapter brings whole, as the base's file would have them.
#pragma once

#include "model/adapters/stored_adapter.h"
#include "model/model_shape.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid::model {

// The rows of a matrix of the base's, [outputs, inputs] in the type in which the adapter has it. Its shape has been looked at: of a table
// [outputs, inputs] as it is, of a product's as AdaptedPair says.
std::vector<std::byte> whole_rows(const StoredMatrix& stored, const LinearShape& shape);

// A norm's weights, or its biases, to which nothing is added. Nothing: there are not so many.
std::optional<std::vector<float>> whole_values(const StoredMatrix& stored, const StoredTensor& tensor, float plus, std::int64_t count);

}  // namespace braid::model
