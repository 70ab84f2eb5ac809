#pragma once

#include "braid/generation_request.h"

#include <cstdint>

namespace braid::model {

// One token of a pass. Tokens of one sequence are adjacent and in order of position.
struct BatchToken {
  TokenId token = 0;
  std::int32_t position = 0;
  // The sequence's block tables, covering `position`, one for each group of layers, `table_size` after each other; blocks that neither it
  // nor a later token sees may be -1.
  const std::int32_t* blocks = nullptr;
  std::int64_t table_size = 0;

  const std::int32_t* table(std::int32_t group) const { return blocks + group * table_size; }
};

}  // namespace braid::model
