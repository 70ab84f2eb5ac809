// Which rows of a pass go through which experts: a place for each choice of a row, in the order of experts and, of one expert, of rows.
#pragma once

#include "model/product.h"
#include "model/router.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

struct Routes {
  ExpertChoice* choices = nullptr;      // [rows, chosen]
  std::int32_t* place_of = nullptr;     // [rows, chosen]
  std::int32_t* row_of = nullptr;       // [places]
  std::int32_t* expert_of = nullptr;    // [places]
  std::int32_t* begin = nullptr;        // [experts + 1], an expert's first place
  std::size_t* prepared_at = nullptr;   // [experts], where an expert's prepared rows begin
  PreparedProduct* products = nullptr;  // [2 * experts]

  std::int64_t rows_of(std::size_t expert) const { return begin[expert + 1] - begin[expert]; }
};

}  // namespace braid::model
