// Between the tokens of two models that have different ones.
#pragma once

#include "model/drafting/token_map.h"
#include "text/codec.h"

#include <memory>
#include <optional>
#include <string>

namespace braid::app {

// The first difference between two tokenizers' tokens, as a part of a sentence; nullopt: there is none.
std::optional<std::string> difference_of_tokens(const text::ModelCodec& large, const text::ModelCodec& small);

// `large` outlives it.
std::unique_ptr<const model::TokenMap> make_text_map(const text::ModelCodec& large, std::unique_ptr<const text::ModelCodec> small);

}  // namespace braid::app
