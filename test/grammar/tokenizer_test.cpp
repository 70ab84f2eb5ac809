// Constraints over the vocabularies of real tokenizers.
#include "app/constraint_vocabulary.h"
#include "grammar/compiler.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace braid::test {
namespace {

// The demo model's, and others where test data are at hand.
std::vector<std::string> tokenizer_files() {
  std::vector<std::string> files = {BRAID_SOURCE_DIR "/models/demo-q8_0.gguf"};
  const char* data = std::getenv("BRAID_TEST_DATA");
  if (data == nullptr) return files;
  for (const char* name : {"llama-bpe", "qwen2", "llama-spm", "phi-3"})
    files.push_back(std::string(data) + "/models/vocab/ggml-vocab-" + name + ".gguf");
  return files;
}

bool is_allowed(ConstraintState& state, TokenId token, std::size_t vocab) {
  std::vector<std::uint32_t> mask((vocab + 31) / 32);
  state.fill_mask(mask);
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

// However a tokenizer cuts a valid answer, the masks let it through, and end it with each end-of-sequence token.
TEST(TokenizerVocabulary, LetsTheTokenizersOwnTokensThrough) {
  const std::string compact = R"({"name":"Zoë 中文 😀","path":"C:\\x\n","list":[1,2.5e-3,null,{"a":[[]]}],"":{}})";
  for (const std::string& path : tokenizer_files()) {
    const auto file = files::GgufFile::open(path);
    ASSERT_TRUE(file) << path;
    const auto codec = text::ModelCodec::from_gguf(*file);
    ASSERT_TRUE(codec) << path;
    const grammar::Compiler compiler([&] { return app::constraint_vocabulary(**codec); });
    const auto vocab = static_cast<std::size_t>((*codec)->vocab_size());
    const auto constraint = compiler.compile({ConstraintSpec::JsonObject{}, "response_format"});
    ASSERT_TRUE(constraint);
    for (const std::string& text : {compact, std::string("{\n  \"a\": [\n    true\n  ]\n}")}) {
      const auto state = (*constraint)->start({});
      std::string seen;
      for (TokenId token : (*codec)->tokenizer().encode(text, {.add_special = false})) {
        // A tokenizer that puts a space before each text has no other token for its beginning.
        if (seen.empty() && (*codec)->token_bytes(token).front() == ' ') {
          const auto bytes = (*codec)->token_bytes(token).substr(1);
          if (bytes.empty()) continue;
          token = *(*codec)->tokenizer().vocabulary().find(bytes);
        }
        ASSERT_TRUE(is_allowed(*state, token, vocab)) << path << ": " << (*codec)->token_bytes(token) << " after " << seen;
        state->accept(token);
        seen += (*codec)->token_bytes(token);
      }
      for (const TokenId end : (*codec)->end_of_generation()) EXPECT_TRUE(is_allowed(*state, end, vocab)) << path;
    }
  }
}

}  // namespace
}  // namespace braid::test
