// tokenizer.model and tiktoken's files, for folders without tokenizer.json.
#include "support/test_data.h"
#include "text/tokenizer/tokenizer.h"

#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>

namespace braid::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(0x80U | (value & 0x7fU));
  return out + static_cast<char>(value);
}

std::string number_field(unsigned number, std::uint64_t value) { return varint(number << 3U) + varint(value); }
std::string bytes_field(unsigned number, const std::string& bytes) { return varint(number << 3U | 2U) + varint(bytes.size()) + bytes; }

std::string piece(const std::string& text, float score, unsigned type = 1) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return bytes_field(1, bytes_field(1, text) + varint(2U << 3U | 5U) + bits + number_field(3, type));
}

// 0 <unk>, 1 <s>, 2 </s>, then pieces.
std::string sentence_model(unsigned type, const std::string& normalizer = {}) {
  std::string out = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
  for (const auto& [text, score] : std::vector<std::pair<std::string, float>>{
           {"▁he", -2}, {"llo", -2}, {"▁hello", -5}, {"ll", -3}, {"▁", -4}, {"h", -6}, {"e", -6}, {"l", -6}, {"o", -6}})
    out += piece(text, score);
  return out + bytes_field(2, number_field(3, type)) + bytes_field(3, normalizer);
}

Result<Tokenizer> open_model(const std::string& bytes, const std::string& config = {}) {
  return Tokenizer::from_model_file(bytes, {{}, config, {}});
}

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::string_view text, bool special = false) {
  std::vector<std::string> out;
  for (const TokenId token : tokenizer.encode(text, {.add_special = special, .parse_special = true}))
    out.emplace_back(tokenizer.token_bytes(token));
  return out;
}

TEST(SentencePieceFile, unigram_models_take_the_most_probable_pieces) {
  const auto tokenizer = open_model(sentence_model(1));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(pieces_of(*tokenizer, "  hello   hello ", true), ElementsAre(" he", "llo", " he", "llo", "</s>"));
  EXPECT_EQ(tokenizer->vocabulary().eos, 2);
}

TEST(SentencePieceFile, bpe_models_merge_and_begin_with_a_token) {
  const auto tokenizer = open_model(sentence_model(2, number_field(4, 0)));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(pieces_of(*tokenizer, "hello  l", true), ElementsAre("<s>", " ", "h", "e", "llo", " ", " ", "l"));
  const auto bare = open_model(sentence_model(2, number_field(3, 0)), R"({"add_bos_token": false})");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_THAT(pieces_of(*bare, "hello", true), ElementsAre("h", "e", "llo"));
}

TEST(SentencePieceFile, the_configuration_adds_tokens) {
  const auto tokenizer = open_model(sentence_model(2), R"({"eos_token": "<end>", "added_tokens_decoder": {
      "12": {"content": "<end>", "special": true}, "14": {"content": "<tool>", "special": false}}})");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("<end><tool>", {.add_special = false, .parse_special = true}), ElementsAre(12, 14));
  EXPECT_EQ(tokenizer->vocabulary().size(), 15U);
  EXPECT_TRUE(tokenizer->is_silent(12));
  EXPECT_THAT(tokenizer->vocabulary().end_of_generation, ElementsAre(12));
}

TEST(SentencePieceFile, damaged_files_are_refused) {
  const std::string whole = sentence_model(1);
  EXPECT_THAT(open_model("").error().message, HasSubstr("has no pieces"));
  EXPECT_THAT(open_model(whole.substr(0, whole.size() - 1)).error().message, HasSubstr("tokenizer.model is no file of SentencePiece"));
  EXPECT_THAT(open_model(sentence_model(3)).error().message, HasSubstr("type 3"));
  EXPECT_THAT(open_model(sentence_model(1, bytes_field(2, "abcdefgh"))).error().message, HasSubstr("charsmap is damaged"));
  EXPECT_THAT(open_model(whole, R"({"added_tokens_decoder": {"99999999": {"content": "x"}}})").error().message, HasSubstr("do not fit"));
  for (std::size_t size = 0; size < whole.size(); ++size) (void)open_model(whole.substr(0, size));  // any cut is read or refused
}

TEST(SentencePieceFile, a_known_model_encodes_as_its_gguf_file_does) {
  const auto folder = braid::test::test_data("models/stories260K-hf");
  if (!folder) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const auto tokenizer = open_model(file_contents(*folder + "/tokenizer.model"), file_contents(*folder + "/tokenizer_config.json"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto file = files::GgufFile::open(*braid::test::test_data("models/stories260K.gguf"));
  const auto other = Tokenizer::from_gguf(*file);
  ASSERT_TRUE(other);
  for (const std::string_view text : {"Once upon a time, there was a little girl.", "  two  spaces ", "Ünïcödé 中文 😀\n\tok", "a"})
    EXPECT_EQ(tokenizer->encode(text, {.add_special = true, .parse_special = true}),
              other->encode(text, {.add_special = true, .parse_special = true}))
        << text;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8U | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) out += at + i > bytes.size() ? '=' : kDigits[(bits >> (18 - 6 * i)) & 63U];
  }
  return out;
}

std::string ranks_of(const std::vector<std::string>& texts) {
  std::string out;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) out += fmt::format("{} {}\n", base64(texts[rank]), rank);
  return out;
}

std::vector<std::string> all_bytes() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  return texts;
}

TEST(TiktokenFile, merges_follow_the_ranks) {
  std::vector<std::string> texts = all_bytes();
  for (const char* text : {"bc", "ab", "abc", "abcd", " x", "é"}) texts.emplace_back(text);
  const auto tokenizer = open_model(ranks_of(texts), R"({"added_tokens_decoder": {"262": {"content": "<|end|>", "special": true}}})");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(pieces_of(*tokenizer, "abcab x<|end|>é12345"), ElementsAre("abc", "ab", " x", "<|end|>", "é", "1", "2", "3", "4", "5"));
  EXPECT_THAT(pieces_of(*tokenizer, "xbcab"), ElementsAre("x", "bc", "ab"));
  EXPECT_THAT(pieces_of(*tokenizer, "a\xff"), ElementsAre("a", "\xff"));
  EXPECT_THAT(tokenizer->vocabulary().warnings, testing::Contains(HasSubstr("has 262 of them")));
  EXPECT_TRUE(tokenizer->is_silent(262));
}

TEST(TiktokenFile, the_number_of_ranks_tells_the_words) {
  std::vector<std::string> texts = all_bytes();
  for (std::size_t i = texts.size(); i < 151643; ++i) texts.push_back(fmt::format("{:06}", i));
  const auto tokenizer = open_model(ranks_of(texts));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("<|im_start|>", {.add_special = false, .parse_special = true}), ElementsAre(151644));
  EXPECT_EQ(tokenizer->vocabulary().size(), 151643U + 208U);
  EXPECT_THAT(pieces_of(*tokenizer, "000300"), testing::SizeIs(6));  // single digits are words
}

TEST(TiktokenFile, damaged_files_are_refused) {
  EXPECT_THAT(open_model("YQ== 0\nYg==\n").error().message, HasSubstr("line 2"));
  EXPECT_THAT(open_model("YQ== 0\nYg== x\n").error().message, HasSubstr("line 2"));
  EXPECT_THAT(open_model("YQ== 0\n!! 1\n").error().message, HasSubstr("line 2"));
  EXPECT_THAT(open_model("YQ== 0\nYg== 99999999\n").error().message, HasSubstr("rank 99999999"));
}

}  // namespace
}  // namespace braid::text
