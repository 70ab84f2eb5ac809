// Any bytes as a tokenizer's file, and text through what could be read. Behind an "m" the input is a file of SentencePiece or tiktoken.
// Otherwise it is a tokenizer.json up to the first 0x01, and the rest is the text.
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8_stream.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace braid;
using namespace braid::text;

bool is_whole_utf8(std::string_view text) {
  Utf8Stream stream;
  std::string out;
  stream.append(text, out);
  stream.finish(out);
  return out == text;
}

void encode_and_decode(const Tokenizer& tokenizer, std::string_view text, bool special) {
  const std::vector<TokenId> tokens = tokenizer.encode(text, {.add_special = special, .parse_special = special});
  Utf8Stream stream;
  std::string streamed;
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= tokenizer.vocabulary().size()) std::abort();
    stream.append(tokenizer.token_bytes(token), streamed);
    if (!is_whole_utf8(streamed)) std::abort();
  }
  if (!is_whole_utf8(tokenizer.decode(tokens))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const bool model = input.starts_with('m');
  const std::string_view file = model ? input.substr(1) : input.substr(0, input.find('\x01'));
  const std::string_view text = model ? "ab  a b\u2581\u00e9 A\n" : file.size() < input.size() ? input.substr(file.size() + 1) : "";
  const auto tokenizer = model ? Tokenizer::from_model_file(file, {}) : Tokenizer::from_json({file, {}, {}});
  if (!tokenizer) {
    if (tokenizer.error().message.empty()) std::abort();
    return 0;
  }
  for (const bool special : {false, true}) encode_and_decode(*tokenizer, text, special);
  return 0;
}
