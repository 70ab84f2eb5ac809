// libFuzzer's entry; see http_json.h.
#include "fuzz/http_json.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  braid::test::fuzz_http_json({reinterpret_cast<const char*>(data), size});
  return 0;
}
