// libFuzzer's entry; see jinja.h.
#include <cstddef>
#include <cstdint>

#include "fuzz/jinja.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  braid::test::fuzz_jinja({reinterpret_cast<const char*>(data), size});
  return 0;
}
