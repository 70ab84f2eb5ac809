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
  std::int32_t given = kEmbedded;  // which vector of Pass::given is its embedding
  std::uint32_t adapter = 0;       // StepRow::adapter
  // Its rotary position is `position` + shift, and so much more where rows and columns of a picture have their own.
  std::int32_t shift = 0;
  std::int32_t down = 0;
  std::int32_t across = 0;
  std::int32_t ahead = 0;  // positions behind its own that it attends to as well, all of this pass
  bool stretched = false;  // StepRow::stretched

  static constexpr std::int32_t kEmbedded = -1;  // the model's own
};

// A copy of a sequence's state after the first `count` of its tokens in the pass.
struct PassSnapshot {
  std::int32_t count = 0;
  std::uint32_t state = 0;  // its blocks, in Pass::blocks
};

// The tokens of one sequence, where the model has recurrent layers.
struct PassSequence {
  std::int64_t first = 0;  // into Pass::tokens
  std::int32_t count = 0;
  bool is_first = false;    // no token comes before them: the state is what it is at a beginning, whatever its blocks hold
  std::uint32_t state = 0;  // the blocks of the state, in Pass::blocks, which they carry on
  // The last of them are guesses, behind which the state does not go on; what its layers read of them is kept from this row on.
  std::int32_t drafted = 0;
  std::int32_t kept = 0;
  std::uint32_t snapshot_begin = 0;  // into Pass::snapshots, in ascending order
  std::uint32_t snapshot_count = 0;
};

// Made to be reused, as plans are.
struct Pass {
  std::vector<PassToken> tokens;     // those of one sequence are adjacent and in order of position
  std::vector<std::int32_t> picked;  // ascending indices of tokens whose hidden state is wanted
  std::vector<std::int32_t> blocks;
  std::vector<float> given;             // [vectors, given_parts, the model's width]
  std::int32_t given_parts = 1;         // the embedding, and what is added behind each of the first layers
  std::vector<PassSequence> sequences;  // of all tokens, in their order; empty without recurrent layers
  std::vector<PassSnapshot> snapshots;

  const std::int32_t* table(const PassToken& token, std::int32_t group) const {
    return blocks.data() + token.tables + static_cast<std::size_t>(group) * token.table_size;
  }

  void clear() {
    tokens.clear();
    picked.clear();
    blocks.clear();
    given.clear();
    sequences.clear();
    snapshots.clear();
  }
};

}  // namespace braid::step
