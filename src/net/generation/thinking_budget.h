// How long a model may reason: the constraint that makes it close its reasoning.
#pragma once

#include "braid/constraint.h"
#include "braid/text_codec.h"
#include "net/generation/call.h"

#include <memory>

namespace braid::net {

// call.constraint, and besides: once call.thinking_budget tokens of reasoning are written, the closing tag is all that may come. Where
// call.constraint forbids that tag, it wins. Just call.constraint when there is no budget, or the model marks no reasoning. `codec`
// outlives the constraint.
std::shared_ptr<const Constraint> with_thinking_budget(const TextCodec& codec, const GenerationCall& call);

}  // namespace braid::net
