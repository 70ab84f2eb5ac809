// Times as Ollama writes them.
#pragma once

#include <ctime>
#include <string>

namespace braid::net::ollama {

// 2026-01-31T12:00:00Z.
std::string timestamp(std::time_t unix_seconds);

}  // namespace braid::net::ollama
