// What a fuzz target finds untrue ends it, and the fuzzer keeps the input.
#pragma once

#include <cstdlib>

namespace braid::test {

inline void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace braid::test
