// One matrix product of the rows at hand.
#pragma once

#include "kernels/kernel_table.h"
#include "model/rows.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

struct Product {
  const kernels::PackedMatrix* weights = nullptr;
  Rows out;  // [rows, weights->outputs]
  bool accumulate = false;
  const kernels::PackedMatrix* up = nullptr;  // MatmulArgs
  bool stays_apart = false;                   // where ranks compute it, each needs its own outputs alone
};

// A product of some of the rows, which were prepared for it.
struct PreparedProduct {
  Product product;
  const std::byte* prepared = nullptr;
  std::int64_t rows = 0;
};

}  // namespace braid::model
