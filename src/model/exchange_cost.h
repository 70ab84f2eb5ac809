// What ranks hand each other for a token, by the model's shape alone.
#pragma once

#include "model/model_shape.h"
#include "model/share.h"

#include <cstdint>

namespace braid::model {

// Of all layers, where the matrices of a product have one type; a mixed one's products take an exchange for each of its types.
struct ExchangeCost {
  std::int64_t exchanges = 0;  // each of which waits for the slowest rank
  std::int64_t floats = 0;     // of one row, that each rank has afterwards
};

ExchangeCost exchange_cost(const ModelShape& model, const Share& share);

}  // namespace braid::model
