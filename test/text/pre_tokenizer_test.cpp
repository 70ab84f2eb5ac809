#include "text/tokenizer/word_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::text {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> words(const char* name, std::string_view text) {
  std::vector<std::string_view> out;
  WordCutter::make(*word_rules_named(name).value()).value().cut(text, out);
  return out;
}

TEST(PreTokenizer, gpt_2_splits_contractions_letters_numbers_and_the_rest) {
  EXPECT_THAT(words("gpt-2", "I'll say  12 things..."), ElementsAre("I", "'ll", " say", " ", " 12", " things", "..."));
  EXPECT_THAT(words("gpt-2", "I'LL \n\n end  "), ElementsAre("I", "'", "LL", " \n\n", " end", "  "));
}

TEST(PreTokenizer, llama_3_takes_three_digits_and_newlines_with_what_is_before) {
  EXPECT_THAT(words("llama-bpe", "I'LL (pay 12345!\n\nok"), ElementsAre("I", "'LL", " (", "pay", " ", "123", "45", "!\n\n", "ok"));
  EXPECT_THAT(words("llama-bpe", "a \n\n  b"), ElementsAre("a", " \n\n", " ", " b"));
  EXPECT_THAT(words("llama-bpe", "\tx\r\n"), ElementsAre("\tx", "\r\n"));
}

TEST(PreTokenizer, qwen_2_takes_single_digits) { EXPECT_THAT(words("qwen2", "v 12"), ElementsAre("v", " ", "1", "2")); }

TEST(PreTokenizer, starcoder_and_smollm_set_digits_apart_before_words) {
  for (const char* name : {"starcoder", "smollm"}) EXPECT_THAT(words(name, "a  12b"), ElementsAre("a", "  ", "1", "2", "b"));
}

TEST(PreTokenizer, default_sets_punctuation_apart_and_takes_three_digits) {
  EXPECT_THAT(words("default", "it's <b> 12345"), ElementsAre("it", "'", "s", " ", "<", "b", ">", " ", "123", "45"));
}

TEST(PreTokenizer, deepseek_knows_case_letters_and_ideographs) {
  EXPECT_THAT(words("deepseek-llm", "Äpfel 中文12\n "), ElementsAre("Ä", "pfel", " ", "中文", "12", "\n", " "));
  EXPECT_THAT(words("deepseek-llm", "a  ç  "), ElementsAre("a", " ", " ç", "  "));
}

TEST(PreTokenizer, unicode_spaces_letters_and_numbers_count) {
  EXPECT_THAT(words("gpt-2", "é\u3000\u3000٣½"), ElementsAre("é", "\u3000", "\u3000", "٣½"));
}

TEST(PreTokenizer, invalid_bytes_stay_in_place) {
  EXPECT_THAT(words("gpt-2", "a\xff\xfe b\xc3"), ElementsAre("a", "\xff\xfe", " b", "\xc3"));
}

// Names of models whose tokenizers have the rules of another one.
TEST(PreTokenizer, models_share_rules) {
  const auto scanner = [](const char* name) { return word_rules_named(name).value()->scanner; };
  for (const char* name : {"deepseek-r1-qwen", "megrez", "stablelm2"}) EXPECT_EQ(scanner(name), PreTokenizer::kQwen2) << name;
  for (const char* name : {"falcon3", "midm-2.0", "pixtral", "lfm2"}) EXPECT_EQ(scanner(name), PreTokenizer::kLlama3) << name;
  for (const char* name : {"a.x-4.0", "mellum", "olmo"}) EXPECT_EQ(scanner(name), PreTokenizer::kGpt2) << name;
}

TEST(PreTokenizer, rules_of_expressions_cut_in_stages) {
  EXPECT_THAT(words("tekken", "HelloWorld I'll 12"), ElementsAre("Hello", "World", " I", "'ll", " ", "1", "2"));
  EXPECT_THAT(words("gpt-4o", "HelloWORLD's 1234"), ElementsAre("Hello", "WORLD's", " ", "123", "4"));
  EXPECT_THAT(words("kimi-k2", "abc中文def"), ElementsAre("abc", "中文", "def"));
  EXPECT_THAT(words("deepseek-v3", "x 1234中文, y\n\n z"), ElementsAre("x", " ", "123", "4", "中文", ",", " y", "\n\n", " z"));
  EXPECT_THAT(words("bloom", "a b, c.d"), ElementsAre("a", " b", ",", " c", ".", "d"));
  EXPECT_THAT(words("viking", "ab12"), ElementsAre("ab", "1", "2"));
  EXPECT_THAT(words("falcon", "a+b 12345"), ElementsAre("a", "+", "b", " ", "123", "45"));
  EXPECT_THAT(words("tiny_aya", "12345678 12345a"), ElementsAre("12", "345", "678", " ", "123", "45", "a"));
  EXPECT_THAT(words("superbpe", "a 1234567"), ElementsAre("a ", "1", "234", "567"));
  EXPECT_THAT(words("afmoe", "n 12345678"), ElementsAre("n", " ", "12", "345", "678"));
  EXPECT_THAT(words("qwen35", "नाम 12"), ElementsAre("नाम", " ", "1", "2"));
  EXPECT_THAT(words("whitespace", " ab  c "), ElementsAre("ab", "c"));
  EXPECT_THAT(words("gemma4", "a b\n\nc"), ElementsAre("a b", "\n\n", "c"));
  EXPECT_THAT(words("tekken", "a\xff\xfe b"), ElementsAre("a", "\xff", "\xfe", " b"));
}

TEST(PreTokenizer, every_known_rule_compiles_and_loses_nothing) {
  const std::string message = word_rules_named("of nobody").error().message;
  const std::string text = "Hello WORLD, it's 1234567 中文かな! \n\n\t x² naïve नमस्ते 한국어 <sentinel:1>\r\n  end  ";
  std::size_t count = 0;
  for (std::size_t at = message.find("one of '") + 8; at < message.size(); ++count) {
    const std::size_t end = message.find('\'', at);
    const std::string name = message.substr(at, end - at);
    std::string joined;
    for (const std::string_view word : words(name.c_str(), text)) joined += word;
    EXPECT_TRUE(joined == text || name == "whitespace") << name << ": " << joined;
    at = message.find('\'', end + 1);
    at = at == std::string::npos ? message.size() : at + 1;
  }
  EXPECT_GT(count, 80U);
}

}  // namespace
}  // namespace braid::text
