#include "text/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::text {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> words(const char* name, std::string_view text) {
  std::vector<std::string_view> out;
  split_words(pre_tokenizer_named(name).value(), text, out);
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
  for (const char* name : {"deepseek-r1-qwen", "megrez"}) EXPECT_EQ(pre_tokenizer_named(name).value(), PreTokenizer::kQwen2) << name;
  for (const char* name : {"falcon3", "midm-2.0", "pixtral"}) EXPECT_EQ(pre_tokenizer_named(name).value(), PreTokenizer::kLlama3) << name;
  for (const char* name : {"a.x-4.0", "mellum"}) EXPECT_EQ(pre_tokenizer_named(name).value(), PreTokenizer::kGpt2) << name;
}

}  // namespace
}  // namespace braid::text
