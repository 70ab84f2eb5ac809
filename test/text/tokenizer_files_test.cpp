// Real vocabularies with known-good encodings, where BRAID_TEST_DATA has them.
#include "support/test_data.h"
#include "text/tokenizer/tokenizer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <simdjson.h>
#include <sstream>

namespace braid::text {
namespace {

Result<Tokenizer> open_tokenizer(const std::string& path) {
  const auto file = files::GgufFile::open(path);
  if (!file) return file.error();
  return Tokenizer::from_gguf(*file);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<TokenId> read_ids(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<TokenId>(in), {}};
}

class KnownVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(KnownVocabulary, encodes_exactly_as_known) {
  const auto path = braid::test::test_data(std::string("models/vocab/ggml-vocab-") + GetParam() + ".gguf");
  if (!path) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const auto tokenizer = open_tokenizer(*path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto texts = split(read_file(*path + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(read_file(*path + ".out"), "\n");
  ASSERT_LE(texts.size(), lines.size());
  ASSERT_GT(texts.size(), 40U);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer->encode(texts[i], {.add_special = false, .parse_special = false}), read_ids(lines[i])) << texts[i];
}

TEST(Infill, marks_are_found_by_their_names) {
  const auto starcoder = braid::test::test_data("models/vocab/ggml-vocab-starcoder.gguf");
  const auto gpt2 = braid::test::test_data("models/vocab/ggml-vocab-gpt-2.gguf");
  if (!starcoder || !gpt2) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const auto tokenizer = open_tokenizer(*starcoder);
  ASSERT_TRUE(tokenizer && tokenizer->vocabulary().infill);
  const InfillTokens& marks = *tokenizer->vocabulary().infill;
  EXPECT_EQ(tokenizer->token_bytes(marks.prefix), "<fim_prefix>");
  EXPECT_EQ(tokenizer->token_bytes(marks.suffix), "<fim_suffix>");
  EXPECT_EQ(tokenizer->token_bytes(marks.middle), "<fim_middle>");
  EXPECT_FALSE(open_tokenizer(*gpt2)->vocabulary().infill);
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, KnownVocabulary,
                         testing::Values("llama-spm", "phi-3", "gpt-2", "llama-bpe", "qwen2", "starcoder", "deepseek-llm", "bert-bge"),
                         [](const auto& test_case) {
  std::string name = test_case.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

std::vector<TokenId> ids_of(simdjson::dom::element array) {
  std::vector<TokenId> ids;
  for (const auto id : array.get_array()) ids.push_back(static_cast<TokenId>(id.get_int64().value()));
  return ids;
}

TEST(KnownModel, demo_prompts_encode_as_the_reference) {
  const auto path = braid::test::test_data("models/demo-q8_0.gguf");
  if (!path) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const auto tokenizer = open_tokenizer(*path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  simdjson::dom::parser parser;
  const simdjson::dom::element reference = parser.load(*braid::test::test_data("models/demo-reference.json"));
  std::size_t count = 0;
  for (const auto entry : reference["bf16"].get_array()) {
    const auto text = std::string_view(entry["prompt"].get_string());
    EXPECT_EQ(tokenizer->encode(text, {.add_special = true, .parse_special = true}), ids_of(entry["prompt_ids"])) << text;
    ++count;
  }
  EXPECT_GT(count, 0U);
}

TEST(KnownModel, stories_prompts_encode_as_the_reference) {
  const auto path = braid::test::test_data("models/stories260K.gguf");
  if (!path) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const auto tokenizer = open_tokenizer(*path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  simdjson::dom::parser parser;
  const simdjson::dom::element reference = parser.load(*braid::test::test_data("models/stories260K-reference.json"));
  for (const auto entry : reference["cases"].get_array()) {
    const auto text = std::string_view(entry["prompt"].get_string());
    EXPECT_EQ(tokenizer->encode(text, {}), ids_of(entry["prompt_ids"])) << text;
  }
}

}  // namespace
}  // namespace braid::text
