// Which pairs of a head turn by a token's position and which by the row and column of what it shows.
#pragma once

#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <array>
#include <cstdint>

namespace braid::model {

using PictureSections = std::array<std::int32_t, 3>;  // pairs by position, row and column

// From rope.dimension_sections to the model's first rotary table. `mixed`: pairs of the three follow each other in turn.
void read_picture_sections(GgufKeys& keys, ModelShape& model, const PictureSections& fallback, bool mixed);

}  // namespace braid::model
