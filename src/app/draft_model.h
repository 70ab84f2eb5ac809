// The small model that guesses tokens for a large one (--draft).
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "model/drafting/model_drafter.h"
#include "text/codec.h"

#include <memory>
#include <optional>
#include <string>

namespace braid::app {

struct Loading;

// options.draft, or null where that is empty. It computes with loading.team, which outlives it; its KV pool is not there yet.
// kInvalidArgument when its tokens are not those of `codec`, which belongs to the model that it guesses for.
Result<std::shared_ptr<model::ModelDrafter>> load_draft(const ModelOptions& options, const Loading& loading, const text::ModelCodec& codec);

// The first difference between two tokenizers' tokens, as a part of a sentence; nullopt: there is none.
std::optional<std::string> difference_of_tokens(const text::ModelCodec& large, const text::ModelCodec& small);

}  // namespace braid::app
