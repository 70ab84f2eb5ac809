// Tokenizers of GGUF files beyond SentencePiece's merges, byte-level BPE and WordPiece.
#include "support/small_vocabularies.h"
#include "text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::text {
namespace {

using braid::test::GgufWriter;
using braid::test::TokenList;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Tokenizer> tokenizer_of(const GgufWriter& writer) {
  const auto file = files::GgufFile::from_bytes(writer.source("vocabulary.gguf"));
  if (!file) return file.error();
  return Tokenizer::from_gguf(*file);
}

std::vector<std::string> texts_of(const Tokenizer& tokenizer, std::string_view text, bool special = false) {
  std::vector<std::string> out;
  for (const TokenId token : tokenizer.encode(text, {.add_special = special, .parse_special = true}))
    out.push_back(tokenizer.vocabulary().entries[static_cast<std::size_t>(token)].text);
  return out;
}

// 0 <pad>, 1 </s>, 2 <unk>, then pieces by their scores.
GgufWriter unigram_vocabulary() {
  TokenList list;
  list.add("<pad>", 0, 3);
  list.add("</s>", 0, 3);
  list.add("<unk>", 0, 2);
  list.add("<sep>", 0, 4);
  for (const auto& [text, score] : std::vector<std::pair<std::string, float>>{
           {"▁he", -2}, {"llo", -2}, {"▁hello", -5}, {"▁", -3}, {"h", -6}, {"e", -6}, {"l", -6}, {"o", -6}, {"▁wor", -3}, {"ld", -3}})
    list.add(text, score);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "t5").u32("tokenizer.ggml.unknown_token_id", 2);
  list.write(writer);
  return writer;
}

TEST(UnigramGguf, takes_the_most_probable_pieces) {
  const auto tokenizer = tokenizer_of(unigram_vocabulary());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, "hello world"), ElementsAre("▁he", "llo", "▁wor", "ld"));
  EXPECT_THAT(texts_of(*tokenizer, "hello", true), ElementsAre("▁he", "llo", "</s>"));
  EXPECT_EQ(tokenizer->token_bytes(4), " he");
}

TEST(UnigramGguf, unknown_characters_that_follow_each_other_are_one_token) {
  const auto tokenizer = tokenizer_of(unigram_vocabulary());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, "中文 o"), ElementsAre("▁", "<unk>", "▁", "o"));
  EXPECT_THAT(texts_of(*tokenizer, "o<sep>o"), ElementsAre("▁", "o", "<sep>", "▁", "o"));
}

TEST(UnigramGguf, extra_spaces_go_where_the_file_says_so) {
  const auto tokenizer = tokenizer_of(unigram_vocabulary().boolean("tokenizer.ggml.remove_extra_whitespaces", true));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, "  hello   hello "), ElementsAre("▁he", "llo", "▁he", "llo"));
  EXPECT_THAT(texts_of(*tokenizer, "  "), ElementsAre());
}

// One unit for the root, one for "A" (65) at 1 ^ 65, and its value: the text at 0.
TEST(UnigramGguf, a_charsmap_replaces_the_longest_key) {
  std::string units(4 * 256, '\0');
  const auto set = [&](std::size_t at, std::uint32_t unit) {
    for (std::size_t i = 0; i < 4; ++i) units[4 * at + i] = static_cast<char>((unit >> (8 * i)) & 0xffU);
  };
  set(0, 1U << 10U);                            // children at 1 ^ label
  set(1 ^ 65, (2U << 10U) | (1U << 8U) | 65U);  // a key ends here
  set(1 ^ 65 ^ 2, 0x80000000U);                 // its text begins at 0
  std::string bytes = {0, 4, 0, 0};
  bytes += units + std::string("hello\0", 6);
  std::vector<std::int32_t> numbers;
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  const auto tokenizer = tokenizer_of(unigram_vocabulary().i32s("tokenizer.ggml.precompiled_charsmap", numbers));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, "A h"), ElementsAre("▁he", "llo", "▁", "h"));
  const auto damaged = tokenizer_of(unigram_vocabulary().i32s("tokenizer.ggml.precompiled_charsmap", {1, 2, 3, 4, 5}));
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("charsmap is damaged"));
}

GgufWriter character_vocabulary(const char* model, const char* pre) {
  TokenList list;
  list.add("<unk>", 0, 2);
  list.add("<bos>", 0, 3);
  constexpr char kHex[] = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) list.add(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", 0, 6);
  for (const char* text : {"▁", "a", "b", "\n", "\n\n\n", "ab", "▁ab", "é"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", model).u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.unknown_token_id", 0);
  if (pre != nullptr) writer.string("tokenizer.ggml.pre", pre);
  writer.strings("tokenizer.ggml.merges", {"a b", "▁ ab"});
  list.write(writer);
  return writer;
}

TEST(CharacterPairs, gemma_4_merges_characters_and_keeps_runs_of_newlines) {
  const auto tokenizer = tokenizer_of(character_vocabulary("gemma4", nullptr));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, "ab ab\n\n\néá", true), ElementsAre("<bos>", "ab", "▁ab", "\n\n\n", "é", "<0xC3>", "<0xA1>"));
  EXPECT_EQ(tokenizer->token_bytes(264), " ab");
  EXPECT_EQ(tokenizer->token_bytes(2 + 0xC3), "\xC3");
}

TEST(CharacterPairs, words_alone_are_merged_where_white_space_does_not_count) {
  const auto tokenizer = tokenizer_of(character_vocabulary("whitespace", "whitespace"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, " ab  a\n"), ElementsAre("ab", "a"));
}

// Kimi-K2's files have no merges.
TEST(RankedPairs, merges_follow_from_the_ids) {
  TokenList list;
  for (unsigned byte = 0; byte < 256; ++byte) list.add(spell_byte(static_cast<unsigned char>(byte)));
  for (const char* text : {"bc", "ab", "abc", "abcd"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "kimi-k2");
  list.write(writer);
  const auto tokenizer = tokenizer_of(writer);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(texts_of(*tokenizer, "abc"), ElementsAre("abc"));
  EXPECT_THAT(texts_of(*tokenizer, "abce"), ElementsAre("abc", "e"));
  EXPECT_THAT(texts_of(*tokenizer, "xbcab"), ElementsAre("x", "bc", "ab"));
}

}  // namespace
}  // namespace braid::text
