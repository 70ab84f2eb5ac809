// llama-server's own endpoints: completions, gaps to be filled, vectors.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::llama {

std::unique_ptr<const Dialect> completion();  // POST /completion
std::unique_ptr<const Dialect> infill();      // POST /infill
std::unique_ptr<const Dialect> embedding();   // POST /embedding

}  // namespace braid::net::llama
