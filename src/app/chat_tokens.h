// Messages as the tokens that a model goes on from.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/value.h"
#include "text/codec.h"

#include <vector>

namespace braid::app {

// By the model's chat template, up to where an answer begins. A model without one continues the last message instead.
Result<std::vector<TokenId>> chat_tokens(const text::ModelCodec& codec, ValueList messages);

}  // namespace braid::app
