// Which tokens an answer may have at all, beside what its text must be.
#pragma once

#include "net/generation/call.h"

#include <cstdint>
#include <memory>

namespace braid::net {

// call.constraint within the call's allowed tokens and banned sequences; call.constraint itself where it has none. `vocab` tokens.
std::shared_ptr<const Constraint> with_token_rules(const GenerationCall& call, std::int32_t vocab);

}  // namespace braid::net
