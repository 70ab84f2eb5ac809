// Ollama's /api/chat and /api/generate as dialects: lines of JSON, streamed unless the body says otherwise.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::ollama {

extern const Voice kVoice;

std::unique_ptr<const Dialect> chat();
std::unique_ptr<const Dialect> generate();

}  // namespace braid::net::ollama
