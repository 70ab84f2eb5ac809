// What a model may write, or a client send, to trouble who reads the answer.
#include "net/generation/parser/answer_parser.h"
#include "net/generation/stop_window.h"
#include "net/json/parse.h"
#include "net/json/write.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {
namespace {

using net::Delta;

net::AnswerSyntax calls_of(std::string_view chat_template) {
  net::AnswerSyntax syntax;
  syntax.calls = &net::call_syntax_of(chat_template);
  syntax.functions = {"f"};
  return syntax;
}

struct Heard {
  std::string text;
  std::string arguments;
  int calls = 0;

  void add(const std::vector<Delta>& deltas) {
    for (const Delta& delta : deltas) {
      if (const auto* said = std::get_if<net::TextDelta>(&delta)) text += said->text;
      if (const auto* part = std::get_if<net::ToolCallArguments>(&delta)) arguments += part->text;
      if (std::holds_alternative<net::ToolCallBegin>(delta)) ++calls;
    }
  }
};

Heard hear(const net::AnswerSyntax& syntax, std::string_view answer) {
  net::AnswerParser parser(syntax, 1);
  std::vector<Delta> deltas;
  parser.feed(answer, deltas);
  parser.finish(false, deltas);
  Heard heard;
  heard.add(deltas);
  return heard;
}

TEST(HostileAnswer, ArgumentsAreValidJsonWhateverTheModelWrites) {
  const auto syntax = calls_of("<tool_call>");
  for (const std::string_view written : {R"({"key":"\u12zz\u00e9","n":[1,2.5e-3,-0,{"deep":[true,null]}]})", R"({"a":007,"b":1})",
                                         R"({"a":1e+,"b":-})", R"({"a":tru3})", R"({"a" "b"})", R"({"a":[1,,2]})", R"({"a":[1}})",
                                         R"({"a":"\q"})", "{\"a\":\"\x01\n\t\"}", R"({'a':1})", R"({"a":{"b":{"c":[[[)"}) {
    for (std::size_t length = 1; length <= written.size(); ++length) {
      const Heard heard = hear(syntax, std::string(R"(<tool_call>{"name":"f","arguments":)") + std::string(written.substr(0, length)));
      ASSERT_EQ(heard.calls, 1) << written.substr(0, length);
      std::string arguments = heard.arguments;
      const Result<Value> parsed = net::json::parse_object(arguments);
      EXPECT_TRUE(parsed.has_value()) << heard.arguments << " from " << written.substr(0, length);
    }
  }
}

TEST(HostileAnswer, ArgumentsKeepEveryScript) {
  const std::string arguments = R"({"città":"Zürich 東京 🙂"})";
  EXPECT_EQ(hear(calls_of("<tool_call>"), R"(<tool_call>{"name":"f","arguments":)" + arguments + "}</tool_call>").arguments, arguments);
}

TEST(HostileAnswer, ACallThatNamesItsPartsTwiceIsOne) {
  const Heard heard =
      hear(calls_of("<tool_call>"), R"(<tool_call>{"name":"f","arguments":{"a":1},"arguments":{"b":2},"name":"g"}</tool_call>)");
  EXPECT_EQ(heard.calls, 1);
  EXPECT_EQ(heard.arguments, R"({"a":1})");
  EXPECT_EQ(heard.text, "");
}

TEST(HostileAnswer, ANameWithoutEndIsText) {
  const auto syntax = calls_of("<function=");
  net::AnswerParser parser(syntax, 1);
  std::vector<Delta> deltas;
  parser.feed("<function=" + std::string(400, 'a'), deltas);
  Heard heard;
  heard.add(deltas);
  EXPECT_EQ(heard.text, "<function=" + std::string(400, 'a')) << "before the answer ends";
}

TEST(HostileAnswer, AStopStringDoesNotReachOverACall) {
  net::StopWindow window({"stop"});
  std::string out;
  EXPECT_FALSE(window.feed("a st", out));
  window.flush(out);  // a call comes
  EXPECT_FALSE(window.feed("op it", out));
  EXPECT_EQ(out, "a stop it");
  EXPECT_TRUE(window.feed(" stop", out));
}

TEST(HostileAnswer, BytesThatAreNoUtf8BecomeReplacements) {
  const auto written = [](std::string_view bytes) {
    std::string out;
    net::json::append_lossy_string(out, bytes);
    return out;
  };
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(written("\xED\xA0\x80"), "\"" + mark + mark + mark + "\"") << "a surrogate";
  EXPECT_EQ(written("\xC0\xAF"), "\"" + mark + mark + "\"") << "a slash in two bytes";
  EXPECT_EQ(written("\xE0\x80\xAF"), "\"" + mark + mark + mark + "\"") << "in three";
  EXPECT_EQ(written("\xF4\x90\x80\x80"), "\"" + mark + mark + mark + mark + "\"") << "beyond U+10FFFF";
  EXPECT_EQ(written("é\xC3"), "\"é" + mark + "\"");
  EXPECT_EQ(written("\xF0\x9F\xA6"), "\"" + mark + "\"") << "the beginning of a character is one, as where answers are decoded";
  EXPECT_EQ(written("\xE4\xB8\xE4\xB8\x96\xF0\x9F!"), "\"" + mark + "世" + mark + "!\"");
}

TEST(HostileAnswer, ABodyOfTooManyValuesIsRefused) {
  std::string body = "[1";
  for (int i = 0; i < net::json::kMaxValues; ++i) body += ",1";
  body += "]";
  const Result<Value> parsed = net::json::parse(body);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace braid::test
