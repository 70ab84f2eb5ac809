// Tokenizers of Hugging Face folders. test/e2e/tokenizers_test.mjs holds them against the tokenizers library; here is what it has no part in.
#include "support/test_data.h"
#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <simdjson.h>

namespace braid::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr EncodeOptions kWords{.add_special = false, .parse_special = false};
constexpr EncodeOptions kWithSpecial{.add_special = true, .parse_special = true};

// A tokenizer of words, with `members` besides its model: 0 <unk>, 1 hello, 2 world, 3 <s>, 4 </s>.
std::string word_tokenizer(std::string_view members = R"("pre_tokenizer": {"type": "WhitespaceSplit"})") {
  return fmt::format(
      R"({{"version": "1.0", "model": {{"type": "WordLevel", "unk_token": "<unk>", "vocab": {{"<unk>": 0, "hello": 1, "world": 2, "<s>": 3,
      "</s>": 4}}}}, "added_tokens": [{{"id": 3, "content": "<s>", "special": true}}, {{"id": 4, "content": "</s>", "special": true}}], {}}})",
      members);
}

Tokenizer open_json(const std::string& json, const std::string& config = {}) {
  auto tokenizer = Tokenizer::from_json({json, config, {}});
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return std::move(*tokenizer);
}

std::string refusal_of(const std::string& json, const std::string& config = {}) {
  const auto tokenizer = Tokenizer::from_json({json, config, {}});
  return tokenizer ? "no error" : tokenizer.error().message;
}

std::string with(std::string_view member) { return word_tokenizer(member); }

TEST(JsonTokenizer, control_tokens_are_found_only_where_they_are_wanted) {
  const Tokenizer tokenizer = open_json(word_tokenizer());
  EXPECT_THAT(tokenizer.encode("<s> hello </s>", {.add_special = false, .parse_special = true}), ElementsAre(3, 1, 4));
  EXPECT_THAT(tokenizer.encode("<s> hello </s>", kWords), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0));
  const std::size_t literal[] = {0};
  EXPECT_THAT(tokenizer.encode("<s> hello</s>", {.add_special = false, .parse_special = true, .literal = literal}),
              ElementsAre(0, 0, 0, 1, 4));
  EXPECT_TRUE(tokenizer.spells_control_token("a<s>", 1));
  EXPECT_FALSE(tokenizer.spells_control_token("a<t>", 1));
}

TEST(JsonTokenizer, config_names_special_tokens) {
  const Tokenizer tokenizer = open_json(word_tokenizer(), R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})");
  EXPECT_EQ(tokenizer.vocabulary().bos, 3);
  EXPECT_EQ(tokenizer.vocabulary().eos, 4);
  EXPECT_THAT(tokenizer.vocabulary().end_of_generation, ElementsAre(4));
  EXPECT_FALSE(tokenizer.vocabulary().add_bos);
  EXPECT_TRUE(tokenizer.is_silent(4));
  EXPECT_TRUE(tokenizer.is_silent(99));
  EXPECT_EQ(tokenizer.token_bytes(99), "");
  EXPECT_THAT(open_json(word_tokenizer(), R"({"bos_token": "<bos>"})").vocabulary().warnings, ElementsAre(HasSubstr("'<bos>'")));
}

TEST(JsonTokenizer, llama_classes_add_the_first_token_by_a_setting) {
  const Tokenizer tokenizer =
      open_json(word_tokenizer(), R"({"bos_token": "<s>", "add_bos_token": true, "tokenizer_class": "LlamaTokenizer"})");
  EXPECT_TRUE(tokenizer.vocabulary().add_bos);
  EXPECT_THAT(tokenizer.encode("hello", kWithSpecial), ElementsAre(3, 1));
}

TEST(JsonTokenizer, ends_of_the_configuration_end_answers) {
  const std::string json = word_tokenizer();
  const auto tokenizer = Tokenizer::from_json({json, {}, {2, 4, 77}});
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->vocabulary().end_of_generation, ElementsAre(2, 4));
  EXPECT_TRUE(tokenizer->is_silent(2));
}

TEST(JsonTokenizer, invalid_bytes_are_replacement_characters) {
  const std::string json = R"({"model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a�b": 1}}})";
  EXPECT_THAT(open_json(json).encode("a\xff"
                                     "b",
                                     kWords),
              ElementsAre(1));
}

TEST(JsonTokenizer, refuses_components_that_it_does_not_know_by_name) {
  EXPECT_THAT(refusal_of(R"({"model": {"type": "Tree"}})"), testing::AllOf(HasSubstr("'model'"), HasSubstr("'Tree'"), HasSubstr("'BPE'")));
  for (const char* member : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
    EXPECT_THAT(refusal_of(with(fmt::format(R"("{}": {{"type": "Magic"}})", member))),
                testing::AllOf(HasSubstr(fmt::format("'{}' has the type 'Magic'", member)), HasSubstr("'Sequence'")));
  EXPECT_THAT(refusal_of(with(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "X"}]})")),
              HasSubstr("'pre_tokenizer.pretokenizers[1]' has the type 'X'"));
}

TEST(JsonTokenizer, refuses_what_cannot_be_read) {
  EXPECT_THAT(refusal_of(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("no 'model'"));
  EXPECT_THAT(refusal_of(R"({"version": "2.0", "model": {}})"), HasSubstr("'2.0'"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "WordLevel", "vocab": [1]}})"), HasSubstr("'model.vocab' is not an object"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "WordLevel", "vocab": {"a": -1}}})"), HasSubstr("the id of 'a'"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "WordLevel", "vocab": {"a": 9999999}}})"), HasSubstr("ids up to 9999999"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"), HasSubstr("merge 0"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}})"), HasSubstr("is not two tokens"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}}})"), HasSubstr("'model.merges' is not an array"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "Unigram", "vocab": [["a"]]}})"), HasSubstr("'model.vocab[0]'"));
  EXPECT_THAT(refusal_of(R"({"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 1}})"), HasSubstr("'model.unk_id' is 1"));
  EXPECT_THAT(refusal_of(with(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}})")), HasSubstr("'(a' cannot be used"));
  EXPECT_THAT(refusal_of(with(R"("pre_tokenizer": {"type": "Split", "behavior": "Isolated"})")), HasSubstr("'pre_tokenizer.pattern'"));
  EXPECT_THAT(refusal_of(with(R"("pre_tokenizer": {"type": "Punctuation", "behavior": "Merged"})")), HasSubstr("'Merged'"));
  EXPECT_THAT(refusal_of(with(R"("pre_tokenizer": {"type": "FixedLength", "length": 0})")), HasSubstr("length' is 0"));
  EXPECT_THAT(refusal_of(with(R"("pre_tokenizer": {"type": "Metaspace", "replacement": "ab"})")), HasSubstr("not one character"));
  EXPECT_THAT(refusal_of(with(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"})")), HasSubstr("is damaged"));
  EXPECT_THAT(refusal_of(with(R"("normalizer": {"type": "Strip", "strip_left": 1})")),
              HasSubstr("'normalizer.strip_left' is not true or false"));
  EXPECT_THAT(refusal_of(with(R"("post_processor": {"type": "BertProcessing", "sep": ["</s>", 70], "cls": ["<s>", 3]})")),
              HasSubstr("adds the token 70"));
  EXPECT_THAT(refusal_of(with(R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}]})")),
              HasSubstr("lacks '<x>'"));
  EXPECT_THAT(refusal_of(word_tokenizer(), "{"), HasSubstr("tokenizer_config.json is not"));
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The same model as a folder and as GGUF.
TEST(KnownFolder, encodes_as_the_gguf_file_does) {
  const auto folder = braid::test::test_data("models/demo-hf");
  if (!folder) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const Tokenizer tokenizer = open_json(contents(*folder + "/tokenizer.json"), contents(*folder + "/tokenizer_config.json"));
  const auto file = files::GgufFile::open(*braid::test::test_data("models/demo-q8_0.gguf"));
  const auto other = Tokenizer::from_gguf(*file);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(tokenizer.vocabulary().size(), other->vocabulary().size());
  EXPECT_EQ(tokenizer.vocabulary().end_of_generation, other->vocabulary().end_of_generation);
  EXPECT_EQ(tokenizer.vocabulary().bos, other->vocabulary().bos);
  for (TokenId token = 0; static_cast<std::size_t>(token) < other->vocabulary().size(); ++token) {
    EXPECT_EQ(tokenizer.token_bytes(token), other->token_bytes(token)) << token;
    EXPECT_EQ(tokenizer.is_silent(token), other->is_silent(token)) << token;
  }
  const std::string text = "<|im_start|>user\nWrite 12 lines about the sea, it's <tool_call>blue</tool_call>.<|im_end|>\n";
  for (const EncodeOptions& options : {kWords, kWithSpecial}) EXPECT_EQ(tokenizer.encode(text, options), other->encode(text, options));
}

}  // namespace
}  // namespace braid::text
