// The tokens that stand before and behind those of a text: the "post_processor" of tokenizer.json.
#pragma once

#include "braid/generation_request.h"
#include "text/tokenizer/pipeline/config_node.h"

#include <optional>
#include <vector>

namespace braid::text {

// The tokens of a prompt in order; nothing stands for those of the text itself.
using TokenFrame = std::vector<std::optional<TokenId>>;

// The tokens of two texts in order.
struct PairPiece {
  std::optional<TokenId> token;  // nothing: those of a text
  int text = 0;                  // the first (0) or the second (1)
  int type = 0;                  // token type of these
};
using PairFrame = std::vector<PairPiece>;

// What `node` makes of two texts; without one they follow each other.
PairFrame read_pair_processor(const std::optional<ConfigNode>& node);

// What `node` (absent: nothing) makes of a single text. Faults are left in the node.
TokenFrame read_post_processor(const std::optional<ConfigNode>& node);

}  // namespace braid::text
