// Tools and history of the Responses API as coding agents send them.
#include "net/fake_constraints.h"
#include "net/generation/custom_input.h"
#include "net/responses/input_items.h"
#include "net/test_server.h"
#include "net/wish/seal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <string>

namespace braid::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CallerCodec final : public FakeCodec {
 public:
  CallerCodec() { chat_template = "tools <tool_call>"; }
};

// A server whose model makes one call.
class CallingServer {
 public:
  explicit CallingServer(std::string call) {
    server.on_loop([&] {
      server.model().codec = &codec_;
      server.model().constraints = &compiler_;
      server.engine().script = [text = "<tool_call>\n" + std::move(call) + "\n</tool_call>"](const GenerationRequest&) {
        return events_of(text);
      };
    });
  }
  Reply ask(const std::string& members) { return server.ask(post("/v1/responses", R"({"input":"x",)" + members + "}")); }

 private:
  CallerCodec codec_;
  FakeCompiler compiler_;

 public:
  TestServer server;
};

TEST(ResponsesTools, WhatOnlyAProviderRunsIsLeftOutAndNamed) {
  TestServer server;
  const auto ask = [&](const std::string& members) { return server.ask(post("/v1/responses", R"({"input":"x",)" + members + "}")); };
  const std::string tools = R"("tools":[{"type":"web_search"},{"type":"function","name":"f"},{"type":"mcp","server_label":"a"},)"
                            R"({"type":"tool_of_next_year","x":[1]},{"type":"web_search"}])";
  const Reply reply = ask(tools);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers.at("x-braid-tools-ignored"), "mcp, tool_of_next_year, web_search");
  EXPECT_FALSE(ask(R"("tools":[{"type":"function","name":"f"}])").headers.contains("x-braid-tools-ignored"));
  EXPECT_EQ(ask(R"("stream":true,)" + tools).headers.at("x-braid-tools-ignored"), "mcp, tool_of_next_year, web_search");
  EXPECT_EQ(ask(R"("tools":[{"type":"web_search"}],"tool_choice":"auto")").status, 200);
  EXPECT_EQ(
      ask(R"("tools":[{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]})").status,
      200);
}

TEST(ResponsesTools, OnlyAForcedCallOfWhatIsLeftOutIsAnError) {
  TestServer server;
  const std::string tools = R"({"input":"x","tools":[{"type":"web_search"}],"tool_choice":)";
  for (const char* choice :
       {R"({"type":"web_search"})", R"("required")", R"({"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]})"}) {
    const Reply reply = server.ask(post("/v1/responses", tools + choice + "}"));
    EXPECT_EQ(reply.status, 400) << choice;
    EXPECT_THAT(reply.body, HasSubstr(R"("param":"tool_choice)")) << choice;
  }
}

constexpr char kPatch[] =
    R"("tools":[{"type":"custom","name":"patch","description":"Patches.","format":{"type":"grammar","syntax":"lark","definition":"start: /a+/"}}])";

TEST(ResponsesTools, ACustomToolTakesTextAndGivesItBack) {
  CallingServer caller(R"({"name":"patch","arguments":{"input":"a \"b\"\n\u00e9\ud83d\ude00"}})");
  const Reply whole = caller.ask(kPatch);
  ASSERT_EQ(whole.status, 200) << whole.body;
  EXPECT_THAT(whole.body, HasSubstr(R"("type":"custom_tool_call","call_id":"call_)"));
  EXPECT_THAT(whole.body, HasSubstr(R"("name":"patch","input":"a \"b\"\né😀"})"));
  EXPECT_THAT(whole.body, Not(HasSubstr("function_call")));
  EXPECT_THAT(whole.body, HasSubstr(R"("format":{"type":"grammar")")) << "the tool is repeated as it came";
  const Reply streamed = caller.ask(std::string(kPatch) + R"(,"stream":true)");
  EXPECT_THAT(streamed.body, HasSubstr(R"("type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"ctc_)"));
  EXPECT_THAT(streamed.body, HasSubstr("event: response.custom_tool_call_input.delta"));
  EXPECT_THAT(streamed.body, HasSubstr(R"("output_index":0,"input":"a \"b\"\né😀"})"));
  std::string text;
  constexpr std::string_view kDelta = R"("delta":")";
  for (std::size_t at = 0; (at = streamed.body.find(kDelta, at)) != std::string::npos; at += kDelta.size())
    text += streamed.body.substr(at + kDelta.size(), streamed.body.find("\"}\n", at) - at - kDelta.size());
  EXPECT_EQ(text, R"(a \"b\"\né😀)");
}

TEST(ResponsesTools, TheModelIsToldOfACustomToolAsAFunction) {
  CallingServer caller(R"({"name":"patch","arguments":{"input":"a"}})");
  caller.server.on_loop([&] {
    static FakeCodec plain;
    plain.chat_template = "plain";  // tools are written into the prompt
    caller.server.model().codec = &plain;
  });
  ASSERT_EQ(caller.ask(kPatch).status, 200);
  caller.server.on_loop([&] {
    const auto& ids = caller.server.engine().submitted[0].prompt;
    const std::string prompt(ids.begin(), ids.end());
    EXPECT_THAT(prompt, HasSubstr(R"("name":"patch","description":"Patches.\n\nThe input must match this grammar (lark):\nstart: /a+/")"));
    EXPECT_THAT(prompt, HasSubstr(R"("parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"])"));
  });
}

TEST(ResponsesTools, ToolsOfANamespaceKeepTheirNamesForTheClient) {
  CallingServer caller(R"({"name":"agents__spawn","arguments":{"n":1}})");
  const std::string tools =
      R"("tools":[{"type":"namespace","name":"agents","description":"Many.","tools":[)"
      R"({"type":"function","name":"spawn","parameters":{"type":"object"}},{"type":"custom","name":"say"},{"type":"odd"}]}])";
  const Reply reply = caller.ask(tools);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_THAT(reply.body, HasSubstr(R"("name":"spawn","arguments":"{\"n\":1}","namespace":"agents"})"));
  EXPECT_EQ(reply.headers.at("x-braid-tools-ignored"), "agents.odd");
  for (const char* choice : {R"({"type":"function","name":"spawn"})", R"({"type":"function","name":"spawn","namespace":"agents"})",
                             R"({"type":"custom","name":"say"})"})
    EXPECT_EQ(caller.ask(tools + R"(,"tool_choice":)" + choice).status, 200) << choice;
  EXPECT_EQ(caller.ask(tools + R"(,"tool_choice":{"type":"function","name":"other"})").status, 400);
}

TEST(ResponsesTools, EachFunctionIsRepeatedWithAllItsMembers) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/responses", R"({"input":"x","tools":[{"type":"function","name":"f"}]})"));
  EXPECT_THAT(reply.body, HasSubstr(R"("tools":[{"type":"function","name":"f","description":null,"parameters":null,"strict":false}])"));
}

std::string fed(std::string_view arguments, std::size_t step) {
  net::CustomInput input;
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); i += step) text += input.feed(arguments.substr(i, step));
  return text + input.finish();
}

TEST(ResponsesTools, AnInputIsReadInPiecesOfAnySize) {
  for (const std::size_t step : {1U, 2U, 3U, 5U, 99U}) {
    EXPECT_EQ(fed(R"({ "input" : "tab\t\\ \/ \u0041\u00e9\u20ac\ud83d\ude00" })", step), "tab\t\\ / A\u00e9\u20ac\U0001F600") << step;
    EXPECT_EQ(fed(R"({"input":"\ud83dx\ude00\ud83d"})", step), "\uFFFDx\uFFFD\uFFFD") << step;
    EXPECT_EQ(fed(R"({"input":""})", step), "") << step;
    EXPECT_EQ(fed(R"({"patch":"a\nb"})", step), "a\nb") << step;
    EXPECT_EQ(fed(R"({"a":1,"b":2})", step), R"({"a":1,"b":2})") << step;
    EXPECT_EQ(fed("{}", step), "") << step;
    for (const char* cut : {"", "{", R"({"inp)", R"({"input")", R"({"input":)", R"({"input":")", R"({"pat)"})
      EXPECT_EQ(fed(cut, step), "") << cut;
    EXPECT_EQ(fed(R"({"patch":"a\nb)", step), "a\nb") << step;
    EXPECT_EQ(fed(R"({"a":1,"b)", step), R"({"a":1})") << step;
  }
}

// max_tokens ends a call that the model chose to make, anywhere: its markup is no text, in no dialect.
TEST(CutCalls, NoneBecomesText) {
  constexpr char kFunction[] = R"({"type":"function","function":{"name":"f"}})";
  struct Dialect {
    std::string path;
    std::string body;
    const char* text;  // what only an answer with text has
  };
  const Dialect dialects[] = {
      {"/v1/chat/completions", fmt::format(R"("messages":[{{"role":"user","content":"x"}}],"tools":[{}])", kFunction),
       R"("content":"[^"])"},
      {"/v1/responses", R"("input":"x","tools":[{"type":"function","name":"f"}])", "output_text"},
      {"/v1/responses", R"("input":"x","tools":[{"type":"custom","name":"f"}])", "output_text|\\\\\"inp"},
      {"/v1/messages", R"("max_tokens":99,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{}}])",
       R"("type":"text"|text_delta|"":null)"},
      {"/api/chat", fmt::format(R"("messages":[{{"role":"user","content":"x"}}],"tools":[{}])", kFunction), R"("content":"[^"]|"":null)"},
  };
  CallerCodec codec;
  FakeCompiler compiler;
  TestServer server;
  server.on_loop([&] {
    server.model().codec = &codec;
    server.model().constraints = &compiler;
  });
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"input\": \"a\"}}\n</tool_call>";
  for (std::size_t length = 2; length <= call.size(); ++length) {
    const std::string cut = call.substr(0, length);
    server.on_loop([&] { server.engine().script = [&cut](const GenerationRequest&) { return events_of(cut, FinishReason::kLength); }; });
    for (const Dialect& each : dialects)
      for (const char* stream : {"true", "false"}) {
        const Reply reply = server.ask(post(each.path, fmt::format(R"({{"stream":{},{}}})", stream, each.body)));
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_FALSE(std::regex_search(reply.body, std::regex(each.text))) << cut << "\n" << reply.body;
      }
  }
}

// What a history's items are to the model: roles, and the functions called.
std::string told(const std::string& items) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/responses", R"({"input":[{"role":"user","content":"q"},)" + items + "]}"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  std::string prompt;
  server.on_loop([&] {
    if (server.engine().submitted.empty()) return;
    const auto& ids = server.engine().submitted[0].prompt;
    prompt.assign(ids.begin(), ids.end());
  });
  return prompt;
}

TEST(ResponsesTools, TheHistoryTakesItemsOfEveryKind) {
  EXPECT_EQ(told(R"({"type":"custom_tool_call","call_id":"c","name":"patch","input":"a\nb"},)"
                 R"({"type":"custom_tool_call_output","call_id":"c","output":"done"})"),
            "user:q;assistant:[{id=c}{type=function}{function={name=patch}{arguments={input=a\nb}}}];tool:done;assistant:");
  EXPECT_EQ(
      told(
          R"({"type":"function_call","call_id":"c","name":"spawn","namespace":"agents","arguments":"{\"n\":1}"},)"
          R"({"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"one"},{"type":"input_image","image_url":"x"}]})"),
      "user:q;assistant:[{id=c}{type=function}{function={name=agents__spawn}{arguments={n=1}}}];"
      "tool:one\n(an image that cannot be shown here);assistant:");
  EXPECT_EQ(
      told(R"({"type":"local_shell_call","id":"l","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}},)"
           R"({"type":"local_shell_call_output","id":"c","output":"a.txt"})"),
      "user:q;assistant:[{id=c}{type=function}{function={name=local_shell}{arguments={type=exec}{command=[ls]}}}];tool:a.txt;assistant:");
  EXPECT_EQ(told(R"({"type":"shell_call","call_id":"c","action":{"commands":["ls"]}},)"
                 R"({"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","stderr":""}]})"),
            "user:q;assistant:[{id=c}{type=function}{function={name=shell}{arguments={commands=[ls]}}}];"
            R"(tool:{"stdout":"a","stderr":""};assistant:)");
  EXPECT_EQ(told(R"({"type":"mcp_call","id":"m","server_label":"docs","name":"find","arguments":"{}","output":"page"})"),
            "user:q;assistant:[{id=m}{type=function}{function={name=docs__find}{arguments=}}];tool:page;assistant:");
  EXPECT_EQ(told(R"({"type":"mcp_call","id":null,"server_label":"docs","name":"find","arguments":"{}","output":null,"error":"gone"})"),
            "user:q;assistant:[{id=call_1}{type=function}{function={name=docs__find}{arguments=}}];tool:gone;assistant:");
  EXPECT_EQ(told(R"({"type":"shell_call","id":"s","call_id":null,"action":{"commands":["ls"]}})"),
            "user:q;assistant:[{id=s}{type=function}{function={name=shell}{arguments={commands=[ls]}}}];assistant:");
}

TEST(ResponsesTools, ItemsThatNoModelReadsAreLeftOut) {
  ValueList messages;
  std::vector<std::string> left_out;
  const ValueList items = {ValueDict{{"type", "web_search_call"}, {"id", "w"}}, ValueDict{{"role", "user"}, {"content", "q"}},
                           ValueDict{{"type", "computer_call"}}, ValueDict{{"type", "item_of_next_year"}},
                           ValueDict{{"type", "reasoning"}, {"id", "r"}, {"summary", ValueList()}, {"encrypted_content", "gAAAA"}}};
  ASSERT_TRUE(net::responses::append_input(messages, Value(items), "input", left_out));
  EXPECT_EQ(messages.size(), 1U);
  EXPECT_THAT(left_out, ElementsAre("web_search_call", "computer_call", "item_of_next_year"));
}

TEST(ResponsesTools, SealedThoughtsComeBack) {
  CallingServer thinker("");
  thinker.server.on_loop([&] {
    static FakeCodec codec;
    codec.chat_template = "tools </think>";
    thinker.server.model().codec = &codec;
    thinker.server.engine().script = [](const GenerationRequest&) { return events_of("<think>ponder</think>\n\nab"); };
  });
  EXPECT_THAT(thinker.ask(R"("store":false)").body, Not(HasSubstr("encrypted_content")));
  const std::string body = thinker.ask(R"("include":["reasoning.encrypted_content"],"store":false)").body;
  constexpr std::string_view kKey = R"("encrypted_content":")";
  const std::size_t at = body.find(kKey);
  ASSERT_NE(at, std::string::npos) << body;
  const std::string seal = body.substr(at + kKey.size(), body.find('"', at + kKey.size()) - at - kKey.size());
  ValueList messages;
  std::vector<std::string> left_out;
  const ValueList items = {ValueDict{{"type", "reasoning"}, {"id", "r"}, {"summary", ValueList()}, {"encrypted_content", seal}}};
  ASSERT_TRUE(net::responses::append_input(messages, Value(items), "input", left_out));
  EXPECT_EQ(*messages.at(0).find("reasoning_content"), Value("ponder"));
}

TEST(Seal, OpensWhatItClosedAndNothingElse) {
  for (const std::string& text : {std::string(), std::string("a"), std::string("a\0b\xFF", 4), std::string(1000, 'z')}) {
    const std::string seal = net::wish::sealed(text);
    EXPECT_EQ(net::wish::opened(seal), text);
    EXPECT_EQ(net::wish::opened(seal.substr(0, seal.size() - 2)), std::nullopt);
    std::string other = seal;
    other[10] = other[10] == 'A' ? 'B' : 'A';
    EXPECT_EQ(net::wish::opened(other), std::nullopt);
  }
  EXPECT_EQ(net::wish::opened(""), std::nullopt);
  EXPECT_EQ(net::wish::opened("braid1."), std::nullopt);
}

TEST(ResponsesTools, TruncationDropsWholeOldestTurns) {
  TestServer server;  // its context holds 1000 characters
  std::string turns = R"({"role":"developer","content":"rule"})";
  for (const char* name : {"one", "two", "three", "four"})
    turns += fmt::format(R"(,{{"role":"user","content":"{0}"}},{{"role":"assistant","content":"{1}"}})", name, std::string(300, 'x'));
  const std::string input = R"({"input":[)" + turns + R"(,{"role":"user","content":"last"}])";
  EXPECT_EQ(server.ask(post("/v1/responses", input + "}")).status, 400);
  ASSERT_EQ(server.ask(post("/v1/responses", input + R"(,"truncation":"auto"})")).status, 200);
  ASSERT_EQ(server.ask(post("/v1/responses", input + R"(,"truncation":"auto","max_output_tokens":10})")).status, 200);
  const std::string huge =
      R"({"truncation":"auto","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":")";
  EXPECT_EQ(server.ask(post("/v1/responses", huge + std::string(2000, 'x') + "\"}]}")).status, 400);
  server.on_loop([&] {
    const auto prompt_of = [&](std::size_t index) {
      const auto& ids = server.engine().submitted[index].prompt;
      return std::string(ids.begin(), ids.end());
    };
    const auto turn = [](const char* name) { return fmt::format("user:{};assistant:{};", name, std::string(300, 'x')); };
    EXPECT_EQ(prompt_of(0), "developer:rule;" + turn("three") + turn("four") + "user:last;assistant:") << "a quarter is for the answer";
    EXPECT_EQ(prompt_of(1), prompt_of(0)) << "three turns would not fit";
  });
}

// An agent's only turn may hold hundreds of calls.
TEST(ResponsesTools, TruncationDropsTheOldestCallsOfTheOnlyTurn) {
  TestServer server;
  std::string items = R"({"role":"user","content":"task"})";
  for (int i = 0; i < 8; ++i)
    items += fmt::format(
        R"(,{{"type":"function_call","call_id":"c{0}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{0}","output":"{0}{1}"}})",
        i, std::string(200, 'x'));
  const std::string body = R"({"truncation":"auto","input":[)" + items + "]}";
  ASSERT_EQ(server.ask(post("/v1/responses", body)).status, 200);
  server.on_loop([&] {
    const auto& ids = server.engine().submitted[0].prompt;
    const std::string prompt(ids.begin(), ids.end());
    EXPECT_TRUE(prompt.starts_with("user:task;assistant:[{id=c6}")) << prompt;
    EXPECT_NE(prompt.find("tool:6x"), std::string::npos);
    EXPECT_NE(prompt.find("tool:7x"), std::string::npos);
  });
}

// What stands before the first turn and what has no turn at all goes, too; rules stay.
TEST(ResponsesTools, TruncationDropsWhateverIsOldest) {
  const std::string x(340, 'x');
  const auto item = [](const char* role, const std::string& text) { return fmt::format(R"({{"role":"{}","content":"{}"}})", role, text); };
  const auto turn = [](const char* role, const std::string& text) { return fmt::format("{}:{};", role, text); };
  const std::string output = R"({"type":"function_call_output","call_id":"c","output":")" + x + "\"}";
  const std::string rule = item("developer", "rule");
  const std::pair<std::string, std::string> cases[] = {
      {item("assistant", x + x + x) + "," + rule + "," + item("user", "last"), turn("developer", "rule") + turn("user", "last")},
      {rule + "," + output + "," + item("assistant", x) + "," + output + "," + item("user", "a") + "," + item("assistant", "b") + "," +
           item("user", "last"),
       turn("developer", "rule") + turn("user", "a") + turn("assistant", "b") + turn("user", "last")},
      {rule + "," + item("assistant", "a" + x) + "," + item("assistant", "b" + x) + "," + item("assistant", "c" + x) + "," +
           item("developer", "more"),
       turn("developer", "rule") + turn("assistant", "b" + x) + turn("assistant", "c" + x) + turn("developer", "more")},
      {item("user", x) + "," + item("user", "task") + "," + item("assistant", "a" + x) + "," + item("assistant", "b" + x) + "," +
           item("assistant", "c" + x),
       turn("user", x) + turn("user", "task") + turn("assistant", "c" + x)},
  };
  TestServer server;
  for (const auto& [items, prompt] : cases)
    ASSERT_EQ(server.ask(post("/v1/responses", R"({"truncation":"auto","input":[)" + items + "]}")).status, 200) << items;
  server.on_loop([&] {
    for (std::size_t i = 0; i < std::size(cases); ++i) {
      const auto& ids = server.engine().submitted[i].prompt;
      EXPECT_EQ(std::string(ids.begin(), ids.end()), cases[i].second + "assistant:") << i;
    }
  });
}

}  // namespace
}  // namespace braid::test
