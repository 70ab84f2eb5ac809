#include "text/tokenizer/tokenizer.h"

#include "support/small_vocabularies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace braid::text {
namespace {

using braid::test::GgufWriter;
using braid::test::TokenList;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kSpecial{.add_special = false, .parse_special = true};

Result<Tokenizer> read(const GgufWriter& writer) {
  const auto file = files::GgufFile::from_bytes(writer.source("vocabulary.gguf"));
  if (!file) return file.error();
  return Tokenizer::from_gguf(*file);
}

Tokenizer open_tokenizer(const GgufWriter& writer) {
  auto tokenizer = read(writer);
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return std::move(*tokenizer);
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options = kPlain) {
  std::vector<std::string> out;
  for (const TokenId token : tokenizer.encode(text, options))
    out.push_back(tokenizer.vocabulary().entries[static_cast<std::size_t>(token)].text);
  return out;
}

std::string joined_bytes(const Tokenizer& tokenizer, std::string_view text) {
  std::string out;
  for (const TokenId token : tokenizer.encode(text, kPlain)) out += tokenizer.token_bytes(token);
  return out;
}

std::string random_text(std::mt19937& random) {
  const std::vector<std::string> parts = {
      "hello",      " ", "  ", "\n", "world", "é", "中", "\xff",   "\xf0\x9f", "😀",  "<tool>",
      "<|im_end|>", "a", "aa", "'s", "12",    "3", ".",  "\u2581", "</s>",     "<s", std::string(1, '\0')};
  std::string text;
  for (std::size_t n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
  return text;
}

TEST(SentencePiece, merges_the_best_score_first) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary());
  EXPECT_THAT(pieces(tokenizer, "hello world"), ElementsAre("\u2581hello", "\u2581world"));
  EXPECT_THAT(pieces(tokenizer, "hello  world"), ElementsAre("\u2581hello", "\u2581", "\u2581world"));
  EXPECT_THAT(pieces(tokenizer, "   hell"), ElementsAre("\u2581\u2581", "\u2581", "\u2581hell"));
}

TEST(SentencePiece, the_leftmost_of_equal_merges_comes_first) {
  TokenList list;
  for (const char* text : {"<unk>", "a", "aa"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama").boolean("tokenizer.ggml.add_space_prefix", false);
  list.write(writer);
  EXPECT_THAT(pieces(open_tokenizer(writer), "aaaaa"), ElementsAre("aa", "aa", "a"));
}

TEST(SentencePiece, spells_unknown_characters_in_bytes) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary());
  EXPECT_THAT(pieces(tokenizer, "é中"), ElementsAre("\u2581", "é", "<0xE4>", "<0xB8>", "<0xAD>"));
  EXPECT_THAT(pieces(tokenizer, "\xff"), ElementsAre("\u2581", "<0xFF>"));
}

TEST(SentencePiece, one_unknown_token_a_character_without_byte_tokens) {
  TokenList list;
  for (const char* text : {"<unk>", "<s>", "</s>", "a"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama").boolean("tokenizer.ggml.add_space_prefix", false);
  list.write(writer);
  EXPECT_THAT(open_tokenizer(writer).encode("a中a", kPlain), ElementsAre(3, 0, 3));
}

TEST(SentencePiece, prefixes_a_space_at_the_start_and_after_special_tokens) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary());
  EXPECT_THAT(pieces(tokenizer, "hello<tool>hello", kPlain), ElementsAre("\u2581hello", "<tool>", "\u2581hello"));
  const Tokenizer bare = open_tokenizer(braid::test::sentence_piece_vocabulary().boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_THAT(pieces(bare, "hell<tool>hell", kPlain), ElementsAre("hell", "<tool>", "hell"));
}

TEST(SentencePiece, tokens_that_span_words_are_found) {
  TokenList list;
  for (const char* text : {"<unk>", "a", "\u2581", "a\u2581", "a\u2581a"}) list.add(text, static_cast<float>(list.texts.size()));
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama").boolean("tokenizer.ggml.add_space_prefix", false);
  list.write(writer);
  EXPECT_THAT(pieces(open_tokenizer(writer), "a a a"), ElementsAre("a\u2581a", "\u2581", "a"));
}

TEST(SentencePiece, control_tokens_never_come_from_merges) {
  TokenList list;
  list.add("<unk>", 0, 2);
  list.add("ab", 9, 3);
  for (const char* text : {"a", "b"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama").boolean("tokenizer.ggml.add_space_prefix", false);
  list.write(writer);
  const Tokenizer tokenizer = open_tokenizer(writer);
  EXPECT_THAT(pieces(tokenizer, "ab"), ElementsAre("a", "b"));
  EXPECT_THAT(pieces(tokenizer, "ab", kSpecial), ElementsAre("ab"));
}

TEST(SpecialTokens, control_tokens_are_found_only_where_allowed) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::byte_pair_vocabulary());
  EXPECT_THAT(tokenizer.encode("<|im_end|>", kSpecial), ElementsAre(257));
  EXPECT_EQ(tokenizer.encode("<|im_end|>", kPlain).size(), 10U);
  EXPECT_THAT(tokenizer.encode("<tool>", kPlain), ElementsAre(258));
}

TEST(SpecialTokens, the_longest_counts) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary());
  EXPECT_THAT(tokenizer.encode("<tool>s<tool><tool>s", kPlain), ElementsAre(261, 260, 261));
}

TEST(SpecialTokens, bos_and_eos_follow_the_metadata) {
  EXPECT_THAT(open_tokenizer(braid::test::sentence_piece_vocabulary()).encode("", {}), ElementsAre(1));
  GgufWriter both = braid::test::sentence_piece_vocabulary();
  both.boolean("tokenizer.ggml.add_bos_token", false).boolean("tokenizer.ggml.add_eos_token", true);
  EXPECT_THAT(open_tokenizer(both).encode("", {}), ElementsAre(2));
  EXPECT_THAT(open_tokenizer(braid::test::byte_pair_vocabulary()).encode("", {}), ElementsAre());
  EXPECT_THAT(open_tokenizer(braid::test::byte_pair_vocabulary("llama-bpe").u32("tokenizer.ggml.bos_token_id", 256)).encode("", {}),
              ElementsAre(256));
  const Tokenizer without = open_tokenizer(braid::test::byte_pair_vocabulary().boolean("tokenizer.ggml.add_bos_token", true));
  EXPECT_THAT(without.encode("", {}), ElementsAre());
  EXPECT_THAT(without.vocabulary().warnings, ElementsAre(HasSubstr("beginning of every text")));
}

TEST(SpecialTokens, those_of_phi_3_take_the_space_after_them) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary().string("general.name", "Phi-3-mini"));
  EXPECT_THAT(pieces(tokenizer, "<|user|>\n hello", kSpecial), ElementsAre("<|user|>", "\u2581hello"));
  EXPECT_EQ(pieces(tokenizer, "<|user|> hello", kSpecial), pieces(tokenizer, "<|user|>hello", kSpecial));
  EXPECT_NE(pieces(tokenizer, "<s> hello", kSpecial), pieces(tokenizer, "<s>hello", kSpecial)) << "but not of all";
}

TEST(SpecialTokens, the_usual_names_end_answers) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::byte_pair_vocabulary());
  EXPECT_THAT(tokenizer.vocabulary().end_of_generation, ElementsAre(256, 257));
  TokenList list;
  for (const char* text : {"a", "<end_of_turn>"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama");
  list.write(writer);
  const Tokenizer unmarked = open_tokenizer(writer);
  EXPECT_TRUE(unmarked.is_silent(1));
  EXPECT_THAT(unmarked.vocabulary().warnings, testing::Contains(HasSubstr("<end_of_turn>")));
}

TEST(SpecialTokens, the_end_of_a_message_is_not_that_of_the_answer_in_harmony) {
  const auto ends = [](const std::vector<const char*>& texts) {
    TokenList list;
    for (const char* text : texts) list.add(text);
    GgufWriter writer;
    writer.string("tokenizer.ggml.model", "llama").u32("tokenizer.ggml.eos_token_id", 1);
    list.write(writer);
    return open_tokenizer(writer).vocabulary().end_of_generation;
  };
  EXPECT_THAT(ends({"a", "<|return|>", "<|end|>", "<|call|>", "<|channel|>"}), ElementsAre(1, 3));
  EXPECT_THAT(ends({"a", "<|endoftext|>", "<|end|>", "<|user|>"}), ElementsAre(1, 2)) << "Phi's";
}

TEST(SpecialTokens, those_that_the_metadata_names_end_answers_in_silence) {
  TokenList list;
  for (const char* text : {"a", "[stop]", "[turn]", "[message]", "[other]"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama").u32("tokenizer.ggml.eos_token_id", 1).u32("tokenizer.ggml.eot_token_id", 2);
  writer.u32("tokenizer.ggml.eom_token_id", 3);
  list.write(writer);
  const Tokenizer tokenizer = open_tokenizer(writer);
  EXPECT_THAT(tokenizer.vocabulary().end_of_generation, ElementsAre(1, 2, 3));
  for (const TokenId id : {1, 2, 3}) EXPECT_TRUE(tokenizer.is_silent(id)) << id;
  EXPECT_FALSE(tokenizer.is_silent(4));
  EXPECT_THAT(tokenizer.vocabulary().warnings, testing::Contains(HasSubstr("[turn]")));
}

TEST(BytePair, merges_by_rank_within_words) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::byte_pair_vocabulary());
  EXPECT_THAT(pieces(tokenizer, "hello world"), ElementsAre("hello", "Ġwor", "ld"));
  EXPECT_THAT(pieces(tokenizer, "aaaaa"), ElementsAre("aa", "aa", "a"));
}

TEST(BytePair, every_text_comes_back_byte_for_byte) {
  std::mt19937 random(1);
  for (const char* pre : {"default", "gpt-2", "llama-bpe", "qwen2", "starcoder", "deepseek-llm", "smollm"}) {
    const Tokenizer tokenizer = open_tokenizer(braid::test::byte_pair_vocabulary(pre));
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_text(random);
      ASSERT_EQ(joined_bytes(tokenizer, text), text);
    }
  }
}

TEST(SentencePiece, every_text_comes_back_byte_for_byte) {
  std::mt19937 random(2);
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary().boolean("tokenizer.ggml.add_space_prefix", false));
  for (int i = 0; i < 500; ++i) {
    std::string text = random_text(random);
    while (text.find("\u2581") != std::string::npos) text.replace(text.find("\u2581"), 3, " ");  // the two are one to the tokenizer
    ASSERT_EQ(joined_bytes(tokenizer, text), text);
  }
}

TEST(BytePair, pieces_that_are_no_tokens_fall_back_to_bytes) {
  TokenList list;
  for (const char* text : {"a", "b", "c", "abc"}) list.add(text);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "gpt-2");
  writer.strings("tokenizer.ggml.merges", {"a b", "ab c"});
  list.write(writer);
  const Tokenizer tokenizer = open_tokenizer(writer);
  EXPECT_THAT(pieces(tokenizer, "abc"), ElementsAre("abc"));
  EXPECT_THAT(pieces(tokenizer, "abb"), ElementsAre("a", "b", "b"));
  EXPECT_THAT(tokenizer.vocabulary().warnings, ElementsAre(HasSubstr("no token for 253 of the 256 bytes")));
}

TEST(BytePair, llama_3_takes_words_that_are_tokens_whole) {
  const auto vocabulary = [](const char* pre) {
    TokenList list;
    for (const char* text : {"a", "b", "ab"}) list.add(text);
    GgufWriter writer;
    writer.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre).strings("tokenizer.ggml.merges", {});
    list.write(writer);
    return writer;
  };
  EXPECT_THAT(pieces(open_tokenizer(vocabulary("llama-bpe")), "ab"), ElementsAre("ab"));
  EXPECT_THAT(pieces(open_tokenizer(vocabulary("gpt-2")), "ab"), ElementsAre("a", "b"));
}

TEST(BytePair, a_missing_pre_tokenizer_is_default_with_a_warning) {
  EXPECT_THAT(open_tokenizer(braid::test::byte_pair_vocabulary("")).vocabulary().warnings, ElementsAre(HasSubstr("'default' is used")));
  EXPECT_TRUE(open_tokenizer(braid::test::sentence_piece_vocabulary()).vocabulary().warnings.empty());
}

TEST(WordPiece, finds_the_longest_pieces_of_plain_lower_case_words) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::word_piece_vocabulary());
  EXPECT_THAT(pieces(tokenizer, "Hello, WORLDS!"), ElementsAre("\u2581hello", "[UNK]", "\u2581world", "s", "\u2581!"));
  EXPECT_THAT(pieces(tokenizer, "Café cafe\u0301"), ElementsAre("\u2581cafe", "\u2581cafe"));
  EXPECT_THAT(pieces(tokenizer, "中中 hellx"), ElementsAre("\u2581中", "\u2581中", "[UNK]"));
  EXPECT_THAT(pieces(tokenizer, "\xffhello\u200b"), ElementsAre("\u2581hello"));
  EXPECT_THAT(tokenizer.encode("hello", {}), ElementsAre(2, 4, 3));
}

TEST(Tokenizer, long_runs_come_back_whole) {
  for (const auto& writer :
       {braid::test::byte_pair_vocabulary(), braid::test::sentence_piece_vocabulary(), braid::test::byte_pair_vocabulary("deepseek-llm")}) {
    const Tokenizer tokenizer = open_tokenizer(writer);
    for (const char* unit : {"a", " ", "<", "1", "é", "ll"}) {
      std::string text = "h";
      for (int i = 0; i < 100'000; ++i) text += unit;
      const std::string decoded = joined_bytes(tokenizer, text);
      EXPECT_TRUE(decoded == text || decoded == " " + text) << unit;
    }
  }
}

TEST(Tokenizer, token_bytes_spell_what_a_token_stands_for) {
  const Tokenizer spm = open_tokenizer(braid::test::sentence_piece_vocabulary());
  EXPECT_EQ(spm.token_bytes(3 + 0xe4), "\xe4");
  EXPECT_EQ(spm.token_bytes(*spm.vocabulary().find("\u2581w")), " w");
  EXPECT_EQ(spm.token_bytes(259), "<|user|>");
  EXPECT_EQ(spm.token_bytes(-1), "");
  EXPECT_EQ(spm.token_bytes(1 << 30), "");
  const Tokenizer bpe = open_tokenizer(braid::test::byte_pair_vocabulary());
  EXPECT_EQ(bpe.token_bytes(0), std::string(1, '\0'));
  EXPECT_EQ(bpe.token_bytes(*bpe.vocabulary().find("Ġwor")), " wor");
}

std::string refusal(const GgufWriter& writer) {
  const auto tokenizer = read(writer);
  return tokenizer ? "" : tokenizer.error().message;
}

GgufWriter of_kind(const char* model) {
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", model);
  return writer;
}

TEST(Tokenizer, refuses_what_it_does_not_know_by_name) {
  EXPECT_THAT(refusal(of_kind("rwkv")), HasSubstr("'rwkv', expected one of 'llama', 'gpt2', 'bert'"));
  EXPECT_THAT(refusal(GgufWriter()), HasSubstr("no 'tokenizer.ggml.model'"));
  EXPECT_THAT(refusal(braid::test::byte_pair_vocabulary("of-nobody")),
              testing::AllOf(HasSubstr("'of-nobody'"), HasSubstr("'llama-bpe'"), HasSubstr("'smollm'")));
}

TEST(Tokenizer, refuses_contradictions) {
  EXPECT_THAT(refusal(of_kind("llama")), HasSubstr("no tokens"));
  EXPECT_THAT(refusal(of_kind("llama").u32("tokenizer.ggml.tokens", 1)), HasSubstr("not an array"));
  const auto with_token = [](const char* model) {
    GgufWriter writer = of_kind(model);
    writer.strings("tokenizer.ggml.tokens", {"a"});
    return writer;
  };
  EXPECT_THAT(refusal(with_token("llama").f32s("tokenizer.ggml.scores", {1, 2})), HasSubstr("found 2 values"));
  EXPECT_THAT(refusal(with_token("llama").i32s("tokenizer.ggml.token_type", {})), HasSubstr("found 0 values"));
  EXPECT_THAT(refusal(with_token("llama").f32s("tokenizer.ggml.scores", {std::numeric_limits<float>::quiet_NaN()})),
              HasSubstr("not a number"));
  EXPECT_THAT(refusal(with_token("gpt2")), HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(refusal(with_token("gpt2").strings("tokenizer.ggml.merges", {"ab"})), HasSubstr("merge 0"));
  EXPECT_THAT(refusal(of_kind("llama").strings("tokenizer.ggml.tokens", {std::string(5000, 'a')})), HasSubstr("5000 bytes"));
}

TEST(Tokenizer, ignores_special_ids_beyond_the_vocabulary_with_a_warning) {
  const Tokenizer tokenizer = open_tokenizer(braid::test::sentence_piece_vocabulary().u32("tokenizer.ggml.eos_token_id", 99999));
  EXPECT_FALSE(tokenizer.vocabulary().eos.has_value());
  EXPECT_THAT(tokenizer.vocabulary().warnings, ElementsAre(HasSubstr("eos_token_id = 99999")));
}

}  // namespace
}  // namespace braid::text
