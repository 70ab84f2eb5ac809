#include "net/ollama/timestamp.h"

#include <array>

namespace braid::net::ollama {

std::string timestamp(std::time_t unix_seconds) {
  std::tm utc{};
  ::gmtime_r(&unix_seconds, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace braid::net::ollama
