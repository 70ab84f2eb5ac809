// A model's tokens as constraints see them.
#pragma once

#include "grammar/vocabulary.h"
#include "model/codec.h"

namespace braid::app {

// Tokens that the file marks as unused take no part.
grammar::Vocabulary constraint_vocabulary(const model::ModelCodec& codec);

}  // namespace braid::app
