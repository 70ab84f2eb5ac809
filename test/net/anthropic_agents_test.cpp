// Anthropic's Messages API as coding agents use it: late system messages, tools of all kinds, cleared context, the list of models.
#include "net/anthropic/request.h"
#include "net/fake_chat.h"
#include "net/test_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The prompt of a message with these members.
std::string prompt_of(const std::string& members) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/messages", R"({"max_tokens":9,)" + members + "}"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  std::string prompt;
  server.on_loop([&] {
    if (server.engine().submitted.empty()) return;
    const auto& ids = server.engine().submitted[0].prompt;
    prompt.assign(ids.begin(), ids.end());
  });
  return prompt;
}

TEST(MessagesOfAgents, ASystemMessageMayStandAnywhere) {
  EXPECT_EQ(prompt_of(R"("system":"S","messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"text","text":"b"}]},)"
                      R"({"role":"user","content":"c"}])"),
            "system:S;user:a;system:b;user:c;assistant:");
}

TEST(MessagesOfAgents, ALeadingHeaderLineIsNoPartOfThePrompt) {
  const std::string messages = R"("messages":[{"role":"user","content":"a"}],"system":)";
  const std::string expected = "system:You are;user:a;assistant:";
  for (const char* system :
       {R"([{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=ab12;"},{"type":"text","text":"You are"}])",
        R"([{"type":"text","text":"x-anthropic-billing-header: 2\nYou are"}])", R"("x-anthropic-a: 1\nx-anthropic-b: 2\nYou are")"})
    EXPECT_EQ(prompt_of(messages + system), expected) << system;
  EXPECT_EQ(prompt_of(messages + R"("x-anthropic-billing-header: 1")"), "user:a;assistant:");
  EXPECT_EQ(prompt_of(R"("messages":[{"role":"system","content":"x-anthropic-b: 1\nYou are"},{"role":"user","content":"a"}])"), expected);
  EXPECT_EQ(prompt_of(messages + R"("You are\nx-anthropic-b: 2")"), "system:You are\nx-anthropic-b: 2;user:a;assistant:");
}

Result<net::GenerationCall> message_of_agent(const std::string& members, const std::string& messages = R"({"role":"user","content":"a"})") {
  std::string body = R"({"max_tokens":9,"messages":[)" + messages + "]," + members + "}";
  return read_text(net::anthropic::read_message, body, kFakeModel);
}

std::vector<std::string> functions_of(const Result<net::GenerationCall>& call) {
  std::vector<std::string> names;
  if (call && call->tools)
    for (const net::ToolFunction& function : call->tools->functions) names.push_back(function.name);
  return names;
}

TEST(MessagesOfAgents, AnyNumberOfToolsWithLongNames) {
  std::string tools;
  for (int i = 0; i < 300; ++i)
    tools += fmt::format(R"({}{{"name":"{}{}","input_schema":{{}}}})", i > 0 ? "," : "", std::string(120, 'n'), i);
  EXPECT_EQ(functions_of(message_of_agent(R"("tools":[)" + tools + "]")).size(), 300U);
  EXPECT_EQ(message_of_agent(R"("tools":[{"name":")" + std::string(129, 'n') + R"("}])").error().param, "tools[0].name");
}

TEST(MessagesOfAgents, ToolsOfTheProvidersAreLeftOutAndNamed) {
  TestServer server;
  const std::string body =
      R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[{"type":"web_search_20250305","name":"web_search"},)"
      R"({"type":"custom","name":"f"},{"type":"tool_of_next_year"}])";
  const Reply reply = server.ask(post("/v1/messages", body + "}"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers.at("x-braid-tools-ignored"), "tool_of_next_year, web_search_20250305");
  const Reply remote = server.ask(post("/v1/messages", body + R"(,"mcp_servers":[{"type":"url","url":"https://a","name":"b"}]})"));
  EXPECT_EQ(remote.headers.at("x-braid-tools-ignored"), "mcp_servers, tool_of_next_year, web_search_20250305");
  const Reply forced = server.ask(post("/v1/messages", body + R"(,"tool_choice":{"type":"tool","name":"web_search"}})"));
  EXPECT_EQ(forced.status, 400);
  EXPECT_THAT(forced.body, HasSubstr("web_search"));
}

TEST(MessagesOfAgents, ADeferredToolWaitsUntilItIsReferredTo) {
  const std::string tools = R"("tools":[{"name":"find"},{"name":"late","defer_loading":true},{"name":"later","defer_loading":true}])";
  EXPECT_THAT(functions_of(message_of_agent(tools)), ElementsAre("find"));
  const std::string found =
      R"({"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"find","input":{}}]},)"
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"late"}]}]})";
  const auto call = message_of_agent(tools, found);
  EXPECT_THAT(functions_of(call), ElementsAre("find", "late"));
  const auto& messages = *std::get<ChatPrompt>(call->prompt).messages.get_if<ValueList>();
  EXPECT_EQ(*messages.back().find("content"), Value("The tool late can be called now."));
  EXPECT_EQ(std::get<ChatPrompt>(call->prompt).tools.get_if<ValueList>()->size(), 2U);
  EXPECT_THAT(functions_of(message_of_agent(tools + R"(,"tool_choice":{"type":"tool","name":"later"})")), ElementsAre("later"));
  const std::string searched = R"("tools":[{"type":"tool_search_tool_regex_20251119","name":"s"},{"name":"late","defer_loading":true}])";
  EXPECT_THAT(functions_of(message_of_agent(searched)), ElementsAre("late")) << "nobody could find it";
}

TEST(MessagesOfAgents, BlocksThatNoModelReadsAreLeftOut) {
  const auto call =
      message_of_agent(R"("tools":[])", R"({"role":"user","content":"a"},{"role":"assistant","content":[)"
                                        R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}},)"
                                        R"({"type":"web_search_tool_result","tool_use_id":"s","content":[]},)"
                                        R"({"type":"redacted_thinking","data":"x"},{"type":"text","text":"b"}]},{"role":"user","content":[)"
                                        R"({"type":"document","source":{"type":"text","media_type":"text/plain","data":"page"}},)"
                                        R"({"type":"search_result","title":"t","source":"u","content":[{"type":"text","text":"r"}]}]})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_THAT(call->items_left_out, ElementsAre("server_tool_use", "web_search_tool_result", "redacted_thinking"));
  const auto& messages = *std::get<ChatPrompt>(call->prompt).messages.get_if<ValueList>();
  EXPECT_EQ(*messages[1].find("content"), Value("b"));
  EXPECT_EQ(*messages[2].find("content"), Value("page\nt\nr"));
}

TEST(MessagesOfAgents, EffortSaysHowMuchAndNotWhether) {
  const auto kwargs_of = [](const std::string& members) { return std::get<ChatPrompt>(message_of_agent(members)->prompt).kwargs; };
  EXPECT_EQ(kwargs_of(R"("output_config":{"effort":"high"})"), Value(ValueDict{{"reasoning_effort", "high"}}));
  EXPECT_EQ(kwargs_of(R"("output_config":{"effort":"high"},"thinking":{"type":"adaptive"})"),
            Value(ValueDict{{"reasoning_effort", "high"}, {"enable_thinking", true}, {"thinking", true}}));
  EXPECT_EQ(message_of_agent(R"("output_config":{"effort":"huge"})").error().param, "output_config.effort");
}

// Three uses of f and one of g, and thoughts before two of them.
std::string long_talk() {
  std::string talk = R"({"role":"user","content":"q"})";
  for (int i = 0; i < 4; ++i) {
    const std::string thought = i % 2 == 0 ? R"({"type":"thinking","thinking":"hm","signature":""},)" : "";
    talk += fmt::format(R"(,{{"role":"assistant","content":[{}{{"type":"tool_use","id":"c{}","name":"{}","input":{{"x":1}}}}]}},)", thought,
                        i, i == 1 ? "g" : "f");
    talk += fmt::format(
        R"({{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{}","content":"{}"}},{{"type":"text","text":"u"}}]}})", i,
        std::string(60, 'r'));
  }
  return talk;
}

// The answer to it, its prompt, and what count_tokens says, where it clears these edits.
struct Cleared {
  std::string answer;
  std::string prompt;
  std::string count;
};

Cleared cleared_by(const std::string& edits, const std::string& more = "") {
  TestServer server;
  const std::string body =
      R"({"max_tokens":9,"context_management":{"edits":[)" + edits + R"(]},"messages":[)" + long_talk() + "]" + more + "}";
  Cleared cleared{server.ask(post("/v1/messages", body)).body, {}, server.ask(post("/v1/messages/count_tokens", body)).body};
  server.on_loop([&] {
    if (server.engine().submitted.empty()) return;
    const auto& ids = server.engine().submitted[0].prompt;
    cleared.prompt.assign(ids.begin(), ids.end());
  });
  return cleared;
}

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(MessagesOfAgents, OldToolUsesAreClearedAndReported) {
  const std::string uses =
      R"({"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":1})";
  const std::string results(60, 'r');
  const Cleared plain = cleared_by("");
  EXPECT_EQ(occurrences(plain.prompt, results), 4U);
  EXPECT_THAT(plain.answer, HasSubstr(R"("context_management":{"applied_edits":[]})"));
  const Cleared cleared = cleared_by(uses + "}");
  EXPECT_EQ(occurrences(cleared.prompt, results), 1U);
  EXPECT_EQ(occurrences(cleared.prompt, "{x=1}"), 4U);
  const std::string tokens = std::to_string(plain.prompt.size() - cleared.prompt.size());
  EXPECT_THAT(cleared.answer,
              HasSubstr(R"({"type":"clear_tool_uses_20250919","cleared_tool_uses":3,"cleared_input_tokens":)" + tokens + "}"));
  EXPECT_EQ(cleared.count, fmt::format(R"({{"input_tokens":{},"context_management":{{"original_input_tokens":{}}}}})",
                                       cleared.prompt.size(), plain.prompt.size()));
  const Cleared spared = cleared_by(uses + R"(,"exclude_tools":["g"],"clear_tool_inputs":true})");
  EXPECT_THAT(spared.answer, HasSubstr(R"("cleared_tool_uses":2)"));
  EXPECT_EQ(occurrences(spared.prompt, "{x=1}"), 2U);
  EXPECT_EQ(cleared_by(uses + R"(,"clear_at_least":{"type":"input_tokens","value":5000}})").prompt, plain.prompt);
  EXPECT_EQ(cleared_by(R"({"type":"clear_tool_uses_20250919"})").prompt, plain.prompt) << "a hundred thousand tokens are not reached";
  EXPECT_EQ(occurrences(cleared_by(R"({"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":300}})").prompt, results),
            3U);
  EXPECT_THAT(cleared_by(uses + "}", R"(,"stream":true)").answer, HasSubstr(R"("cleared_tool_uses":3)"));
}

TEST(MessagesOfAgents, OldThinkingIsCleared) {
  const auto call_with = [](const std::string& edit) {
    return message_of_agent(R"("context_management":{"edits":[)" + edit + "]}", long_talk());
  };
  const auto thoughts = [](const Result<net::GenerationCall>& call) {
    std::size_t count = 0;
    for (const Value& message : *std::get<ChatPrompt>(call->prompt).messages.get_if<ValueList>())
      if (message.find("reasoning_content") != nullptr) ++count;
    return count;
  };
  EXPECT_EQ(thoughts(call_with("")), 2U);
  EXPECT_EQ(thoughts(call_with(R"({"type":"clear_thinking_20251015","keep":"all"})")), 2U);
  EXPECT_EQ(thoughts(call_with(R"({"type":"clear_thinking_20251015"})")), 1U);
  EXPECT_EQ(thoughts(call_with(R"({"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":2}})")), 2U);
  EXPECT_THAT(cleared_by(R"({"type":"clear_thinking_20251015"})").answer,
              HasSubstr(R"("cleared_thinking_turns":1,"cleared_input_tokens":0})"));
  const auto other = call_with(R"({"type":"compact_20260112"})");
  ASSERT_TRUE(other);
  EXPECT_THAT(other->items_left_out, ElementsAre("compact_20260112"));
  EXPECT_EQ(call_with(R"({"type":"clear_tool_uses_20250919","keep":3})").error().param, "context_management.edits[0].keep");
}

class ThinkerCodec final : public FakeCodec {
 public:
  ThinkerCodec() { chat_template = "tools </think>"; }
};

TEST(MessagesOfAgents, OmittedThoughtsAreSealedAndComeBack) {
  const ThinkerCodec codec;
  TestServer server;
  server.on_loop([&] {
    server.model().codec = &codec;
    server.engine().script = [](const GenerationRequest&) { return events_of("<think>ponder</think>\n\nab"); };
  });
  const std::string body =
      R"({"max_tokens":99,"thinking":{"type":"adaptive","display":"omitted"},"messages":[{"role":"user","content":"a"}])";
  const std::string whole = server.ask(post("/v1/messages", body + "}")).body;
  EXPECT_THAT(whole, HasSubstr(R"("content":[{"type":"thinking","thinking":"","signature":"braid1.)"));
  const std::string streamed = server.ask(post("/v1/messages", body + R"(,"stream":true})")).body;
  EXPECT_THAT(streamed, Not(HasSubstr("thinking_delta")));
  const std::size_t at = streamed.find(R"("signature":"braid1)") + 13;
  const std::string seal = streamed.substr(at, streamed.find('"', at) - at);
  EXPECT_THAT(whole, HasSubstr(seal));
  net::anthropic::Gleaned gleaned;
  ValueList chat;
  const Value thinking = ValueDict{{"type", "thinking"}, {"thinking", ""}, {"signature", seal}};
  ASSERT_TRUE(net::anthropic::append_message(chat, ValueDict{{"role", "assistant"}, {"content", ValueList{thinking}}}, "m", gleaned));
  EXPECT_EQ(*chat[0].find("reasoning_content"), Value("ponder"));
}

std::string get_as(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + headers + "\r\n";
}

TEST(MessagesOfAgents, ModelsAreListedInAnthropicsFormForItsClients) {
  TestServer server;
  const std::string version = "anthropic-version: 2023-06-01\r\n";
  const Reply list = server.ask(get_as("/v1/models?limit=1000", version));
  EXPECT_THAT(list.body, HasSubstr(R"({"data":[{"type":"model","id":"fake-model","display_name":"fake-model","created_at":")"));
  EXPECT_THAT(list.body, HasSubstr(R"(],"has_more":false,"first_id":"fake-model","last_id":"fake-model"})"));
  EXPECT_EQ(server.ask(get_as("/v1/models?after_id=fake-model", version)).body,
            R"({"data":[],"has_more":false,"first_id":null,"last_id":null})");
  EXPECT_EQ(server.ask(get_as("/v1/models?limit=0", version)).status, 400);
  EXPECT_THAT(server.ask(get_as("/v1/models/fake-model", version)).body, HasSubstr(R"({"type":"model","id":"fake-model")"));
  const Reply unknown = server.ask(get_as("/v1/models/other", version));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr(R"({"type":"error","error":{"type":"not_found_error")"));
  EXPECT_THAT(server.ask(get_as("/v1/models", "")).body, HasSubstr(R"({"object":"list")"));
}

TEST(MessagesOfAgents, AnUnknownRouteIsRefusedInTheCallersDialect) {
  TestServer server;
  const std::string version = "anthropic-version: 2023-06-01\r\n";
  const std::string anthropic = R"({"type":"error","error":{"type":"not_found_error","message":"there is no route )";
  EXPECT_THAT(server.ask(get_as("/v1/organizations", version)).body, HasSubstr(anthropic));
  EXPECT_THAT(server.ask(post("/v1/messages/batches", "{}")).body, HasSubstr(anthropic));
  EXPECT_THAT(server.ask(get_as("/v1/messages", "")).body, HasSubstr(R"({"type":"error")"));
  EXPECT_THAT(server.ask(get_as("/api/other", "")).body, HasSubstr(R"({"error":"there is no route)"));
  EXPECT_THAT(server.ask(get_as("/v1/other", "")).body, HasSubstr(R"({"error":{"message":"there is no route)"));
}

TEST(MessagesOfAgents, ErrorsAreInTheirFormAndRepeatTheRequestsId) {
  TestServer server;
  const std::pair<std::string, const char*> cases[] = {
      {get("/v1/messages"), "invalid_request_error"},
      {get("/v1/messages/nowhere"), "not_found_error"},
      {post("/v1/messages", "{}"), "invalid_request_error"},
      {post("/v1/messages/count_tokens", "{}"), "invalid_request_error"},
  };
  for (const auto& [request, type] : cases) {
    const Reply reply = server.ask(request);
    EXPECT_THAT(reply.body, HasSubstr(std::string(R"({"type":"error","error":{"type":")") + type)) << request;
    EXPECT_THAT(reply.body, HasSubstr(R"("request_id":")" + reply.headers.at("request-id") + "\"}")) << request;
  }
  EXPECT_EQ(server.ask(get("/v1/messages")).status, 405);
}

TEST(MessagesOfAgents, AnEditHasTheAmountsThatAreDocumented) {
  const auto param = [](const std::string& edit) {
    return message_of_agent(R"("context_management":{"edits":[{)" + edit + "}]}").error().param;
  };
  const std::string uses = R"("type":"clear_tool_uses_20250919",)";
  const std::string at = "context_management.edits[0].";
  EXPECT_EQ(param(uses + R"("trigger":{"type":"output_tokens","value":1})"), at + "trigger.type");
  EXPECT_EQ(param(uses + R"("keep":{"type":"input_tokens","value":1})"), at + "keep.type");
  EXPECT_EQ(param(uses + R"("clear_at_least":{"type":"tool_uses","value":1})"), at + "clear_at_least.type");
  EXPECT_EQ(param(R"("type":"clear_thinking_20251015","keep":{"type":"turns","value":1})"), at + "keep.type");
  EXPECT_TRUE(message_of_agent(R"("context_management":{"edits":[{)" + uses + R"("trigger":{"type":"tool_uses","value":1}}]})"));
}

TEST(MessagesOfAgents, NamesThatNoHeaderMayHoldAreEscaped) {
  TestServer server;
  const Reply reply = server.ask(post(
      "/v1/messages", R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[{"type":"überweb, 100%"},{"type":"a"}]})"));
  EXPECT_EQ(reply.headers.at("x-braid-tools-ignored"), "a, %C3%BCberweb%2C%20100%25");
}

}  // namespace
}  // namespace braid::test
