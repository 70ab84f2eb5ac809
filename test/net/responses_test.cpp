// The Responses API: event order, stored conversations, errors in its own terms.
#include "net/fake_constraints.h"
#include "net/responses/input_items.h"
#include "net/test_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

std::string id_in(const std::string& body) {
  const std::size_t at = body.find("resp_");
  return at == std::string::npos ? "" : body.substr(at, 29);
}

std::vector<std::string> event_names(const std::string& body) {
  std::vector<std::string> names;
  for (std::size_t at = body.find("event: "); at != std::string::npos; at = body.find("event: ", at + 1))
    names.push_back(body.substr(at + 7, body.find('\n', at) - at - 7));
  return names;
}

TEST(Responses, AWholeAnswer) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/responses", R"({"input":"hello","instructions":"Be kind.","metadata":{"a":"b"}})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find(R"("object":"response")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("status":"completed","model":"fake-model","error":null,"incomplete_details":null,"output":[{"id":"msg_)"),
            std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find(R"("content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}])"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("instructions":"Be kind.")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("metadata":{"a":"b"})"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("output_tokens":2,)"), std::string::npos);
  server.on_loop([&] {
    const auto& prompt = server.engine().submitted[0].prompt;
    EXPECT_EQ(std::string(prompt.begin(), prompt.end()), "system:Be kind.;user:hello;assistant:");
  });
}

TEST(Responses, WhatWasLeftToTheServerIsEchoedAsDecided) {
  TestServer server;
  const auto body_of = [&](const std::string& more) { return server.ask(post("/v1/responses", R"({"input":"x",)" + more + "}")).body; };
  const auto has = [](const std::string& body, const char* text) { return body.find(text) != std::string::npos; };
  EXPECT_TRUE(has(body_of(R"("service_tier":"auto")"), R"("service_tier":"default")"));
  EXPECT_TRUE(has(body_of(R"("service_tier":"flex")"), R"("service_tier":"flex")"));
  for (const char* text : {R"("text":{"format":null})", R"("text":{})", R"("text":null)"})
    EXPECT_TRUE(has(body_of(text), R"("text":{"format":{"type":"text"}})")) << text;
  EXPECT_TRUE(has(body_of(R"("text":{"verbosity":"medium","format":null})"), R"("text":{"format":{"type":"text"},"verbosity":"medium"})"));
  EXPECT_TRUE(has(body_of(R"("temperature":1)"), R"("input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0})"));
}

TEST(Responses, WhatIsOnlyRepeatedHasItsTypeAllTheSame) {
  TestServer server;
  const auto status_of = [&](const std::string& more) { return server.ask(post("/v1/responses", R"({"input":"x",)" + more + "}")).status; };
  for (const char* wrong : {R"("max_tool_calls":"x")", R"("max_tool_calls":-1)", R"("stream_options":1)", R"("reasoning":{"summary":5})"})
    EXPECT_EQ(status_of(wrong), 400) << wrong;
  for (const char* right :
       {R"("max_tool_calls":3)", R"("stream_options":{"include_obfuscation":false})", R"("reasoning":{"summary":"auto"})"})
    EXPECT_EQ(status_of(right), 200) << right;
}

TEST(Responses, OfEqualKeysTheLastIsReadAndEchoed) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/responses", R"({"input":"one","input":"two","instructions":"A.","instructions":"B."})"));
  EXPECT_NE(reply.body.find(R"("instructions":"B.")"), std::string::npos) << reply.body;
  server.on_loop([&] {
    const auto& prompt = server.engine().submitted[0].prompt;
    EXPECT_EQ(std::string(prompt.begin(), prompt.end()), "system:B.;user:two;assistant:");
  });
}

TEST(Responses, AStreamHasEveryEventInOrder) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/responses", R"({"input":[{"role":"user","content":"hello"}],"stream":true})"));
  ASSERT_EQ(reply.status, 200);
  const std::vector<std::string> expected = {
      "response.created",           "response.in_progress",       "response.output_item.added", "response.content_part.added",
      "response.output_text.delta", "response.output_text.delta", "response.output_text.done",  "response.content_part.done",
      "response.output_item.done",  "response.completed"};
  std::vector<std::string> names = event_names(reply.body);
  if (names.size() == expected.size() - 1) names.insert(names.begin() + 4, expected[4]);  // both letters came in one delta
  EXPECT_EQ(names, expected);
  EXPECT_NE(reply.body.find(R"("type":"response.created","sequence_number":0,)"), std::string::npos);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
}

TEST(Responses, AStreamEndsWithTheLogProbabilitiesOfTheWholeAnswer) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("one STOP two"); }; });
  const auto logprobs_of = [&](const std::string& more) {
    const std::string fields = R"({"input":"x","stop":"STOP","include":["message.output_text.logprobs"])" + more + "}";
    std::string body = server.ask(post("/v1/responses", fields)).body;
    if (!more.empty()) body.erase(0, body.find("event: response.completed"));
    const std::size_t at = body.find(R"("logprobs":[)");
    return at == std::string::npos ? body : body.substr(at, body.find("]}]}", at) - at);
  };
  const std::string whole = logprobs_of("");
  EXPECT_NE(whole.find(R"({"token":"P")"), std::string::npos) << whole;
  EXPECT_EQ(logprobs_of(R"(,"stream":true)"), whole);
}

class ThinkingCallerCodec final : public FakeCodec {
 public:
  ThinkingCallerCodec() { chat_template = "tools <tool_call> </think>"; }
};

// Of an answer's tokens, those that are its text: each item has its own.
TEST(Responses, LogProbabilitiesAreThoseOfTheText) {
  const ThinkingCallerCodec codec;
  TestServer server;
  server.on_loop([&] {
    server.model().codec = &codec;
    server.engine().script = [](const GenerationRequest&) {
      return events_of("<think>ponder</think>\n\nab <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>cd");
    };
  });
  const auto tokens_of = [&](const std::string& more) {
    const std::string fields =
        R"({"input":"x","tools":[{"type":"function","name":"f"}],"include":["message.output_text.logprobs"])" + more + "}";
    std::string body = server.ask(post("/v1/responses", fields)).body;
    if (!more.empty()) body.erase(0, body.find("event: response.completed"));
    std::string tokens;
    for (std::size_t at = 0; (at = body.find_first_of("\"", at)) != std::string::npos; ++at) {
      constexpr std::string_view kToken = R"("token":")";
      constexpr std::string_view kText = R"("type":"output_text")";
      if (body.compare(at, kToken.size(), kToken) == 0) tokens += body.substr(at + kToken.size(), 1);
      if (body.compare(at, kText.size(), kText) == 0) tokens += '|';
    }
    return tokens;
  };
  EXPECT_EQ(tokens_of(""), "|ab|cd");
  EXPECT_EQ(tokens_of(R"(,"stream":true)"), "|ab|cd");
}

TEST(Responses, AnUnfinishedAnswerIsIncomplete) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("ab", FinishReason::kLength); }; });
  const Reply reply = server.ask(post("/v1/responses", R"({"input":"x","max_output_tokens":2})"));
  EXPECT_NE(reply.body.find(R"("incomplete_details":{"reason":"max_output_tokens"})"), std::string::npos) << reply.body;
}

TEST(Responses, ThePreviousResponseIsTheBeginningOfTheNext) {
  TestServer server;
  const std::string first = id_in(server.ask(post("/v1/responses", R"({"input":"one","instructions":"Only here."})")).body);
  const Reply second = server.ask(post("/v1/responses", R"({"input":"two","previous_response_id":")" + first + R"("})"));
  ASSERT_EQ(second.status, 200) << second.body;
  server.on_loop([&] {
    const auto& prompt = server.engine().submitted[1].prompt;
    EXPECT_EQ(std::string(prompt.begin(), prompt.end()), "user:one;assistant:Hi;user:two;assistant:");
  });
  const Reply again = server.ask("GET /v1/responses/" + first + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(id_in(again.body), first);
  const Reply input = server.ask("GET /v1/responses/" + first + "/input_items HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(input.body.find(R"("text":"one")"), std::string::npos);
  EXPECT_EQ(server.ask("DELETE /v1/responses/" + first + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").status, 200);
  const Reply unknown = server.ask(post("/v1/responses", R"({"input":"two","previous_response_id":")" + first + R"("})"));
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find(R"("param":"previous_response_id","code":"previous_response_not_found")"), std::string::npos) << unknown.body;
}

TEST(Responses, TheInputJoinsWhatCameBeforeInAnyOrderOfKeys) {
  TestServer server;
  const std::string first = id_in(server.ask(post("/v1/responses", R"({"input":"one"})")).body);
  const std::string previous = R"("previous_response_id":")" + first + "\"";
  const std::string input = R"("input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
                            R"({"type":"function_call_output","call_id":"c","output":"x"}])";
  ASSERT_EQ(server.ask(post("/v1/responses", "{" + previous + "," + input + "}")).status, 200);
  ASSERT_EQ(server.ask(post("/v1/responses", "{" + input + "," + previous + "}")).status, 200);
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted[1].prompt, server.engine().submitted[2].prompt); });
}

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"; }

// The ids of a list in their order, then its first_id, last_id and has_more.
std::string ids_of(const std::string& list) {
  std::string ids;
  for (const std::string_view key : {R"({"id":)", R"("first_id":)", R"("last_id":)", R"("has_more":)"})
    for (std::size_t at = list.find(key); at != std::string::npos; at = list.find(key, at + 1)) {
      std::string value = list.substr(at + key.size(), list.find_first_of(",}", at + key.size()) - at - key.size());
      std::erase(value, '"');
      ids += value.substr(value.rfind('_') + 1) + " ";
    }
  return ids;
}

TEST(Responses, InputItemsAreListedPageByPage) {
  TestServer server;
  const std::string body = server
                               .ask(post("/v1/responses", R"({"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"c"}],"id":"msg_own"},
    {"type":"function_call","call_id":"1","name":"f","arguments":"{}","id":"msg_own"},
    {"type":"function_call_output","call_id":"1","output":"d","status":"incomplete","id":null}]})"))
                               .body;
  const std::string path = "/v1/responses/" + id_in(body) + "/input_items";
  const std::string suffix = id_in(body).substr(5);
  const auto list = [&](const std::string& query) { return ids_of(server.ask(get(path + query)).body); };
  EXPECT_EQ(list(""), "in4 in3 own in1 in0 in4 in0 false ");
  EXPECT_EQ(list("?order=asc"), "in0 in1 own in3 in4 in0 in4 false ");
  EXPECT_EQ(list("?limit=2&order=asc"), "in0 in1 in0 in1 true ");
  EXPECT_EQ(list("?limit=2&order=asc&after=msg_" + suffix + "_in1"), "own in3 own in3 true ");
  EXPECT_EQ(list("?limit=2&order=asc&after=fc%5F" + suffix + "_in3"), "in4 in4 in4 false ");
  EXPECT_EQ(list("?after=msg_" + suffix + "_in0"), "null null false ");
  const std::string all = server.ask(get(path + "?order=asc")).body;
  EXPECT_NE(all.find(R"({"id":"msg_)" + suffix +
                     R"(_in0","status":"completed","type":"message","role":"user","content":[{"type":"input_text","text":"a"}]})"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find(R"("content":[{"type":"output_text","text":"b","annotations":[]}])"), std::string::npos) << all;
  EXPECT_NE(
      all.find(R"({"id":"fco_)" + suffix + R"(_in4","type":"function_call_output","call_id":"1","output":"d","status":"incomplete"})"),
      std::string::npos)
      << all;
  for (const std::string_view bad : {"order=up", "order=", "limit=0", "limit=101", "limit=2x", "limit=", "after=msg_x", "after"}) {
    const Reply reply = server.ask(get(path + "?" + std::string(bad)));
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_NE(reply.body.find(R"("param":")" + std::string(bad.substr(0, bad.find('='))) + '"'), std::string::npos) << reply.body;
  }
  const Reply named = server.ask(post("/v1/responses", R"({"input":[{"type":"item_reference","id":"msg_)" + suffix + R"(_in0"}]})"));
  ASSERT_EQ(named.status, 200) << named.body;
  server.on_loop([&] {
    const auto& prompt = server.engine().submitted[1].prompt;
    EXPECT_EQ(std::string(prompt.begin(), prompt.end()), "user:a;assistant:");
  });
}

TEST(Responses, AKeptResponseIsNotStreamedAgain) {
  TestServer server;
  const std::string path = "/v1/responses/" + id_in(server.ask(post("/v1/responses", R"({"input":"one"})")).body);
  EXPECT_EQ(server.ask(get(path + "?include[]=x&stream=false")).status, 200);
  for (const std::string_view value : {"true", "maybe"}) {
    const Reply reply = server.ask(get(path + "?starting_after=3&stream=" + std::string(value)));
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.body.find(R"("param":"stream")"), std::string::npos) << reply.body;
  }
}

TEST(Responses, WhatIsNotToBeStoredIsNot) {
  TestServer server;
  const std::string id = id_in(server.ask(post("/v1/responses", R"({"input":"one","store":false})")).body);
  EXPECT_EQ(server.ask("GET /v1/responses/" + id + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").status, 404);
}

TEST(Responses, ErrorsNameTheFieldsOfThisApi) {
  TestServer server;
  const auto param_of = [&](const std::string& body) {
    const Reply reply = server.ask(post("/v1/responses", body));
    EXPECT_EQ(reply.status, 400) << body;
    const std::size_t at = reply.body.find(R"("param":)") + 8;
    return reply.body.substr(at, reply.body.find(R"(,"code")", at) - at);
  };
  EXPECT_EQ(param_of(R"({})"), R"("input")");
  EXPECT_EQ(param_of(R"({"input":[]})"), R"("input")");
  EXPECT_EQ(param_of(R"({"input":[{"type":"message","role":"king","content":"x"}]})"), R"("input[0].role")");
  EXPECT_EQ(param_of(R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})"),
            R"("input[0].content[0].image_url")");
  EXPECT_EQ(param_of(R"({"input":[{"type":5}]})"), R"("input[0].type")");
  EXPECT_EQ(param_of(R"({"input":[{"type":"compaction","encrypted_content":"x"}]})"), R"("input[0].encrypted_content")");
  EXPECT_EQ(param_of(R"({"input":"x","max_output_tokens":0})"), R"("max_output_tokens")");
  EXPECT_EQ(param_of(R"({"input":"x","tools":[{"name":"f"}]})"), R"("tools[0].type")");
  EXPECT_EQ(param_of(R"({"input":"x","background":true})"), R"("background")");
  EXPECT_EQ(param_of(R"({"input":"x","truncation":"always"})"), R"("truncation")");
  EXPECT_EQ(param_of(R"({"input":"x","temperature":9})"), R"("temperature")");
  EXPECT_EQ(param_of(R"({"input":"x","text":{"verbosity":"shy"}})"), R"("text.verbosity")");
  EXPECT_EQ(param_of(R"({"input":[{"type":"reasoning","summary":[]}]})"), R"("input")");
  EXPECT_EQ(param_of(R"({"input":"x","tools":[{"type":"function"}]})"), R"("tools[0].name")");
  EXPECT_EQ(param_of(R"({"input":"x","tools":[{"type":"function","name":"f","strict":1}]})"), R"("tools[0].strict")");
  EXPECT_EQ(param_of(R"({"input":"x","tool_choice":{"type":"web_search"}})"), R"("tool_choice.type")");
  EXPECT_EQ(param_of(R"({"input":"x","tool_choice":{"type":"function"}})"), R"("tool_choice.name")");
  EXPECT_EQ(param_of(R"({"input":"x","tool_choice":{"type":"function","name":""}})"), R"("tool_choice.name")");
  EXPECT_EQ(param_of(R"({"input":"x","tool_choice":{"type":"allowed_tools","mode":"x"}})"), R"("tool_choice.mode")");
  EXPECT_EQ(param_of(R"({"input":"x","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":""}]}})"),
            R"("tool_choice.tools[0].name")");
  EXPECT_EQ(param_of(R"({"input":")" + std::string(2000, 'x') + R"("})"), R"("input")");
}

TEST(Responses, MessagesOfErrorsNameThemToo) {
  const FakeCompiler compiler;
  TestServer server;
  server.on_loop([&] { server.model().constraints = &compiler; });
  const auto message_of = [&](const std::string& body) { return server.ask(post("/v1/responses", body)).body; };
  EXPECT_NE(message_of(R"({"input":"x","tools":[{"type":"function"}]})").find("'tools[0].name' is missing"), std::string::npos);
  EXPECT_NE(message_of(R"({"input":[{"type":"reasoning","summary":[]}]})").find("'input' is empty"), std::string::npos);
}

TEST(Responses, TakeToolsAndASchemaTogether) {
  const FakeCompiler compiler;
  TestServer server;
  server.on_loop([&] { server.model().constraints = &compiler; });
  for (const char* choice : {"auto", "required"})
    EXPECT_EQ(server
                  .ask(post("/v1/responses", fmt::format(R"({{"input":"x","tools":[{{"type":"function","name":"f"}}],"tool_choice":"{}",)"
                                                         R"("text":{{"format":{{"type":"json_schema","name":"x","schema":{{}}}}}}}})",
                                                         choice)))
                  .status,
              200)
        << choice;
}

TEST(Responses, AReferenceStandsForAnItemThatIsKept) {
  TestServer server;
  const std::string id = id_in(server.ask(post("/v1/responses", R"({"input":"one"})")).body);
  const auto reference = [](const std::string& item) { return R"({"type":"item_reference","id":")" + item + R"("})"; };
  const auto ask = [&](const std::string& item) {
    return server.ask(
        post("/v1/responses", R"({"input":[{"role":"user","content":"one"},)" + item + R"(,{"role":"user","content":"two"}]})"));
  };
  const std::string answer = "msg_" + id.substr(id.find('_') + 1) + "_0";
  const Reply second = ask(reference(answer));
  ASSERT_EQ(second.status, 200) << second.body;
  server.on_loop([&] {
    const auto& prompt = server.engine().submitted[1].prompt;
    EXPECT_EQ(std::string(prompt.begin(), prompt.end()), "user:one;assistant:Hi;user:two;assistant:");
  });
  for (const std::string& unknown : {reference("msg_x_0"), reference(answer + "1"), reference("msg"), reference(""),
                                     std::string(R"({"type":"item_reference"})"), std::string(R"({"type":"item_reference","id":1})")}) {
    const Reply refused = ask(unknown);
    EXPECT_EQ(refused.status, 400) << unknown;
    EXPECT_NE(refused.body.find(R"("param":"input[1].id")"), std::string::npos) << refused.body;
  }
}

TEST(Responses, CallsAndReasoningJoinTheirMessage) {
  ValueList messages;
  const ValueList input = {
      ValueDict{{"role", "user"}, {"content", "q"}},
      ValueDict{
          {"type", "reasoning"}, {"summary", ValueList()}, {"content", ValueList{ValueDict{{"type", "reasoning_text"}, {"text", "hm"}}}}},
      ValueDict{{"type", "function_call"}, {"call_id", "c1"}, {"name", "f"}, {"arguments", "{}"}},
      ValueDict{{"type", "function_call"}, {"call_id", "c2"}, {"name", "g"}, {"arguments", "{}"}},
      ValueDict{{"type", "function_call_output"}, {"call_id", "c1"}, {"output", "1"}},
  };
  std::vector<std::string> left_out;
  ASSERT_TRUE(net::responses::append_input(messages, Value(input), "input", left_out));
  EXPECT_TRUE(left_out.empty());
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(*messages[1].find("reasoning_content"), Value("hm"));
  EXPECT_EQ(messages[1].find("tool_calls")->get_if<ValueList>()->size(), 2U);
  EXPECT_EQ(*messages[2].find("role"), Value("tool"));
}

TEST(Responses, EchoWhatTheServerHasByDefault) {
  TestServer server;
  server.on_loop([&] {
    server.model().defaults.temperature = 0.25F;
    server.model().defaults.top_p = 0.5F;
    server.model().defaults.max_tokens = 7;
  });
  const std::string silent = server.ask(post("/v1/responses", R"({"input":"x"})")).body;
  for (const char* member : {R"("temperature":0.25,)", R"("top_p":0.5,)", R"("max_output_tokens":7,)"})
    EXPECT_NE(silent.find(member), std::string::npos) << silent;
  EXPECT_NE(server.ask(post("/v1/responses", R"({"input":"x","temperature":1.5})")).body.find(R"("temperature":1.5,)"), std::string::npos);
}

}  // namespace
}  // namespace braid::test
