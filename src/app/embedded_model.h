// The model that is linked into the binary.
#pragma once

#include "files/byte_source.h"

#include <memory>

namespace braid::app {

inline constexpr const char* kEmbeddedModelName = "braid-demo";

// Null when the build left it out (BRAID_EMBED=OFF).
std::shared_ptr<const files::ByteSource> embedded_model();

}  // namespace braid::app
