// Any bytes as a GGUF file: the reader and the tokenizers that its metadata describe.
#include "files/gguf.h"
#include "support/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

#include <cstdint>
#include <cstdlib>
#include <numeric>

namespace {

using namespace braid::files;
using namespace braid::text;

// Touches every byte, so that a span beyond the input is found.
unsigned sum(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0U, [](unsigned total, std::byte b) { return total + static_cast<unsigned>(b); });
}

void use(const GgufFile& file) {
  unsigned total = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (file.tensor(tensor.name) != &tensor) std::abort();
    total += sum(tensor.bytes);
  }
  for (const auto& [key, value] : file.metadata()) {
    if (file.find(key) != &value) std::abort();
    if (const auto number = file.unsigned_or(key, 0)) total += static_cast<unsigned>(*number);
  }
  const auto tokenizer = Tokenizer::from_gguf(file);
  if (!tokenizer) return;
  for (const bool parse_special : {false, true})
    for (const braid::TokenId token : tokenizer->encode("Hello, wörld! 12345 中文\n <|im_end|>", {.parse_special = parse_special}))
      if (token < 0 || static_cast<std::size_t>(token) >= tokenizer->vocabulary().size()) std::abort();
  volatile unsigned sink = total;
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto file = GgufFile::from_bytes(std::make_shared<braid::test::OwnedBytes>(std::as_bytes(std::span(bytes, size)), "fuzz.gguf"));
  if (file) {
    use(*file);
  } else if (file.error().message.empty()) {
    std::abort();
  }
  return 0;
}
