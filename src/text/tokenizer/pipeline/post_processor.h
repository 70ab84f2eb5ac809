// The tokens that stand before and behind those of a text: the "post_processor" of tokenizer.json.
#pragma once

#include "braid/generation_request.h"
#include "text/tokenizer/pipeline/config_node.h"

#include <optional>
#include <vector>

namespace braid::text {

// The tokens of a prompt in order; nothing stands for those of the text itself.
using TokenFrame = std::vector<std::optional<TokenId>>;

// What `node` (absent: nothing) makes of a single text. Faults are left in the node.
TokenFrame read_post_processor(const std::optional<ConfigNode>& node);

}  // namespace braid::text
