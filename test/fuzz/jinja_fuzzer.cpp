// libFuzzer's entry; see jinja.h.
#include "fuzz/jinja.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  braid::test::fuzz_jinja({reinterpret_cast<const char*>(data), size});
  return 0;
}
