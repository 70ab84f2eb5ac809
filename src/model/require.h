// What a plan must keep to, or the step fails.
#pragma once

#include <stdexcept>
#include <string>

namespace braid::model {

inline void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(std::string("step plan: ") + what);
}

}  // namespace braid::model
