// Below the plan: what a machine computes, with nothing left open. A plan names tokens that only the strand knows, and its slots hold
// constraints and its copies host memory; a pass is a plain value that follows from it once the strand has looked, and says the same on
// every machine that computes a part of the model.
#pragma once

#include "braid/generation_request.h"
#include "step/step.h"

#include <cstdint>
#include <vector>

namespace braid::step {

// One token of a pass.
struct PassToken {
  TokenId token = 0;
  std::int32_t position = 0;
  // Its sequence's block tables in Pass::blocks, covering `position`: one for each group of layers, one after the other. Blocks that neither
  // it nor a later token sees may be -1.
  std::uint32_t tables = 0;
  std::uint32_t table_size = 0;
};

// Made to be reused, as plans are. The forks come first.
struct Pass {
  std::vector<BlockFork> forks;
  std::vector<PassToken> tokens;     // those of one sequence are adjacent and in order of position
  std::vector<std::int32_t> picked;  // ascending indices of tokens whose hidden state is wanted
  std::vector<std::int32_t> blocks;

  const std::int32_t* table(const PassToken& token, std::int32_t group) const {
    return blocks.data() + token.tables + static_cast<std::size_t>(group) * token.table_size;
  }

  void clear() {
    forks.clear();
    tokens.clear();
    picked.clear();
    blocks.clear();
  }
};

}  // namespace braid::step
