// libFuzzer's entry; see stream_parser.h.
#include "fuzz/stream_parser.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  braid::test::fuzz_stream_parser({reinterpret_cast<const char*>(data), size});
  return 0;
}
