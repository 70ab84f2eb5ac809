// A body before its fields are looked at.
#include "net/fake_chat.h"
#include "net/json/parse.h"

#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::test {
namespace {

TEST(OpenAiBody, MayBeginWithAByteOrderMark) {
  std::string body = "\xEF\xBB\xBF{\"prompt\":\"a\"}";
  EXPECT_TRUE(read_text(net::openai::read_completion, body, kFakeModel));
  body = "\xEF\xBB\xBF\xEF\xBB\xBF{\"prompt\":\"a\"}";
  EXPECT_FALSE(read_text(net::openai::read_completion, body, kFakeModel)) << "one";
}

TEST(OpenAiBody, CountsTheLastOfEqualKeys) {
  std::string body = R"({"messages":[{"role":"user","content":"a"}],"messages":[{"role":"system","role":"user","content":"b"}],)"
                     R"("stop":1,"stop":"x","logit_bias":{"7":1,"7":2}})";
  const auto call = read_text(net::openai::read_chat, body, kFakeModel);
  ASSERT_TRUE(call) << call.error().message;
  const Value& messages = std::get<ChatPrompt>(call->prompt).messages;
  EXPECT_EQ(messages, Value(ValueList{Value(ValueDict{{"role", "user"}, {"content", "b"}})}));
  EXPECT_EQ(call->stop_strings, std::vector<std::string>{"x"});
  ASSERT_EQ(call->sampling.logit_bias.size(), 1U);
  EXPECT_EQ(call->sampling.logit_bias[0].bias, 2.0F);
}

// Programs cut texts between two units of UTF-16.
TEST(OpenAiBody, HalvesOfCharactersBecomeReplacements) {
  const std::string half = "\xEF\xBF\xBD";
  const std::string whole = "\xF0\x9F\x98\x80";
  for (const auto& [text, expected] :
       std::initializer_list<std::pair<std::string, std::string>>{{R"(a\ud83d b)", "a" + half + " b"},
                                                                  {R"(\ude00\uD83D)", half + half},
                                                                  {R"(\ud83d\ude00)", whole},
                                                                  {R"(\ud83d\ud83d\ude00\n\ud83d)", half + whole + "\n" + half},
                                                                  {R"(\\ud83d\ud83d)", "\\ud83d" + half}}) {
    for (const char* more : {"", R"(,"x":123456789012345678901234567890)"}) {
      std::string body = R"({"prompt":")" + text + '"' + more + "}";
      const auto call = read_text(net::openai::read_completion, body, kFakeModel);
      ASSERT_TRUE(call) << body << ": " << call.error().message;
    }
    std::string document = "\"" + text + "\"";
    EXPECT_EQ(*net::json::parse(document), Value(expected)) << text;
  }
}

TEST(OpenAiBody, MustBeAJsonObject) {
  for (std::string body : {"", "{", "[]", "1", "{\"prompt\":\"\xff\"}", "{\"prompt\":\"a\"} x", R"({"prompt":"a","temperature":1e999})"}) {
    const auto call = read_text(net::openai::read_completion, body, kFakeModel);
    ASSERT_FALSE(call) << body;
    EXPECT_EQ(call.error().code, ErrorCode::kInvalidArgument);
  }
  std::string deep = R"({"prompt":"a","x":)" + std::string(200, '[') + std::string(200, ']') + "}";
  EXPECT_NE(read_text(net::openai::read_completion, deep, kFakeModel).error().message.find("deeper than 128"), std::string::npos);
}

}  // namespace
}  // namespace braid::test
