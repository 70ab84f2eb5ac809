// Tells what a file is that is not GGUF, so that the message names the likely cause.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"

#include <optional>

namespace braid::files {

// Nothing when the file begins like GGUF.
std::optional<Error> recognise_foreign(const ByteSource& source);

}  // namespace braid::files
