// The model that is linked into the binary.
#pragma once

#include "model/byte_source.h"

#include <memory>

namespace braid::app {

inline constexpr const char* kEmbeddedModelName = "braid-demo";

// Null when the build left it out (BRAID_EMBED=OFF).
std::shared_ptr<const model::ByteSource> embedded_model();

}  // namespace braid::app
