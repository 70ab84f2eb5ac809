// A model's tokens as constraints see them.
#pragma once

#include "grammar/vocabulary.h"
#include "text/codec.h"

namespace braid::app {

// Tokens that the file marks as unused take no part.
grammar::Vocabulary constraint_vocabulary(const text::ModelCodec& codec);

}  // namespace braid::app
