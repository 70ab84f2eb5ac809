#include "text/tokenizer/utf8_stream.h"

#include <gtest/gtest.h>
#include <random>

namespace braid::text {
namespace {

std::string decode(std::string_view bytes) {
  Utf8Stream stream;
  std::string out;
  stream.append(bytes, out);
  stream.finish(out);
  return out;
}

TEST(Utf8Stream, passes_valid_text_on) { EXPECT_EQ(decode("aé中😀\x7f"), "aé中😀\x7f"); }

TEST(Utf8Stream, holds_back_an_unfinished_character) {
  Utf8Stream stream;
  std::string out;
  stream.append("a\xf0\x9f\x98", out);
  EXPECT_EQ(out, "a");
  stream.append("\x80", out);
  EXPECT_EQ(out, "a😀");
}

// The examples of The Unicode Standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8Stream, replaces_maximal_subparts) {
  EXPECT_EQ(decode("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  EXPECT_EQ(decode("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  EXPECT_EQ(decode("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"), "\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB");
  EXPECT_EQ(decode("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), "\ufffd\ufffd\ufffd\ufffdA");
  EXPECT_EQ(decode("\xe2\x82"), "\ufffd");
}

TEST(Utf8Stream, any_chunking_gives_the_same_text) {
  std::mt19937 random(7);
  const std::string bytes = "a\x80\xc2\xa9\xe0\xa0\xed\x9f\xbf\xf0\x90\x8d\x88\xf4\x8f\xff";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int n = 0; n < 20; ++n) text += bytes[random() % bytes.size()];
    Utf8Stream stream;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(random() % 5, text.size() - at);
      stream.append(std::string_view(text).substr(at, size), out);
      at += size;
    }
    stream.finish(out);
    ASSERT_EQ(out, decode(text));
  }
}

}  // namespace
}  // namespace braid::text
