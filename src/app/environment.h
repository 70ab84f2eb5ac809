// Variables of the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace braid::app {

// Empty where it is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace braid::app
