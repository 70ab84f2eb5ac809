// Any text through small vocabularies of every kind. The first byte picks vocabulary and options, the rest is the text.
#include "support/small_vocabularies.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8_stream.h"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace braid;
using namespace braid::files;
using namespace braid::text;

Tokenizer open(const test::GgufWriter& writer) { return Tokenizer::from_gguf(GgufFile::from_bytes(writer.source()).value()).value(); }

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> list;
    for (const char* pre : {"default", "gpt-2", "llama-bpe", "qwen2", "starcoder", "deepseek-llm"})
      list.push_back(open(test::byte_pair_vocabulary(pre)));
    list.push_back(open(test::sentence_piece_vocabulary()));
    list.push_back(open(test::word_piece_vocabulary()));
    return list;
  }();
  return all;
}

bool is_utf8(std::string_view text) {
  Utf8Stream stream;
  std::string out;
  stream.append(text, out);
  stream.finish(out);
  return out == text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const Tokenizer& tokenizer = tokenizers()[bytes[0] % tokenizers().size()];
  const EncodeOptions options{.add_special = false, .parse_special = (bytes[0] & 0x80U) != 0};
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  Utf8Stream stream;
  std::string decoded;
  std::string streamed;
  for (const TokenId token : tokenizer.encode(text, options)) {
    if (token < 0 || static_cast<std::size_t>(token) >= tokenizer.vocabulary().size()) std::abort();
    decoded += tokenizer.token_bytes(token);
    stream.append(tokenizer.token_bytes(token), streamed);
    if (!is_utf8(streamed)) std::abort();
  }
  stream.finish(streamed);
  // Byte-level vocabularies lose nothing.
  if (tokenizer.vocabulary().kind == TokenizerKind::kBytePair && decoded != text) std::abort();
  return 0;
}
