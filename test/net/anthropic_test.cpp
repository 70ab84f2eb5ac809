// Anthropic's Messages API: blocks, events, errors in its envelope.
#include "net/anthropic/message_format.h"
#include "net/anthropic/request.h"
#include "net/fake_chat.h"
#include "net/test_server.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

TEST(Messages, AWholeAnswerIsExact) {
  TestServer server;
  const Reply reply =
      server.ask(post("/v1/messages", R"({"model":"default","max_tokens":9,"system":"S","messages":[{"role":"user","content":"hello"}]})"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(normalized(reply.body),
            R"({"id":"msg_ID","type":"message","role":"assistant","model":"fake-model",)"
            R"("content":[{"type":"text","text":"Hi","citations":null}],"stop_reason":"end_turn","stop_sequence":null,)"
            R"("stop_details":null,"container":null,"diagnostics":null,)"
            R"("usage":{"input_tokens":30,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,)"
            R"("output_tokens":2,"output_tokens_details":{"thinking_tokens":0},"cache_creation":null,)"
            R"("inference_geo":null,"server_tool_use":null,"service_tier":"standard","speed":null}})");
}

// Where Anthropic's SDKs look for it.
TEST(Messages, AnswersAndErrorsNameTheirRequest) {
  TestServer server;
  const std::string own = "X-Request-Id: mine\r\n";
  const std::string body = R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],"stream":)";
  for (const std::string& request : {post("/v1/messages", body + "false}", own), post("/v1/messages", body + "true}", own),
                                     post("/v1/messages", "{", own), post("/v1/messages/count_tokens", body + "false}", own)})
    EXPECT_EQ(server.ask(request).headers.at("request-id"), "mine") << request;
  EXPECT_FALSE(server.ask(post("/v1/completions", R"({"prompt":"a"})", own)).headers.contains("request-id"));
}

constexpr std::string_view kFurtherUsage =
    R"("output_tokens_details":{"thinking_tokens":0},"cache_creation":null,"inference_geo":null,"server_tool_use":null,)"
    R"("service_tier":"standard","speed":null)";

TEST(Messages, AStreamIsExact) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      auto events = events_of("H");
      return events;
    };
  });
  const Reply reply = server.ask(post("/v1/messages", R"({"max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a"}]})"));
  EXPECT_EQ(
      normalized(reply.body),
      "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_ID\",\"type\":\"message\",\"role\":"
      "\"assistant\",\"model\":\"fake-model\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
      "\"stop_details\":null,\"container\":null,\"diagnostics\":null,\"usage\":{"
      "\"input_tokens\":17,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":0," +
          std::string(kFurtherUsage) +
          "}}}\n\n"
          "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
          "\"text\":\"\",\"citations\":null}}\n\n"
          "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"
          "\"H\"}}\n\n"
          "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
          "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null,"
          "\"stop_details\":null,\"container\":null},"
          "\"usage\":{\"input_tokens\":17,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":1," +
          std::string(kFurtherUsage) +
          "}}\n\n"
          "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

TEST(Messages, TheStopSequenceIsNamed) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("one STOP two"); }; });
  const Reply reply =
      server.ask(post("/v1/messages", R"({"max_tokens":99,"stop_sequences":["STOP"],"messages":[{"role":"user","content":"a"}]})"));
  EXPECT_NE(reply.body.find(R"("stop_reason":"stop_sequence","stop_sequence":"STOP")"), std::string::npos) << reply.body;
}

TEST(Messages, ErrorsHaveItsEnvelope) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/messages", R"({"messages":[{"role":"user","content":"a"}]})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(normalized(reply.body),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"'max_tokens' is missing"},"request_id":"req-ID"})");
  const auto status_of = [&](const std::string& members) {
    return server.ask(post("/v1/messages", R"({"max_tokens":1,)" + members + "}")).status;
  };
  EXPECT_EQ(status_of(R"("messages":[{"role":"king","content":"a"}])"), 400);
  EXPECT_EQ(status_of(R"("messages":[{"role":"user","content":[{"type":"image"}]}])"), 400);
  EXPECT_EQ(status_of(R"("messages":[{"role":"user","content":"a"}],"temperature":1.5)"), 400);
  EXPECT_EQ(status_of(R"("messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"x"})"), 400);
  EXPECT_EQ(status_of(R"("messages":[{"role":"user","content":"a"}],"model":"claude")"), 404);
  const auto error_of = [&](const std::string& members) {
    return server.ask(post("/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],)" + members + "}")).body;
  };
  EXPECT_NE(error_of(R"("stop_sequences":[1])").find("'stop_sequences[0]'"), std::string::npos);
  EXPECT_NE(error_of(R"("tools":[{"name":"f","input_schema":5}])").find("'tools[0].input_schema'"), std::string::npos);
}

TEST(Messages, ErrorsHaveAnthropicsTypes) {
  const auto type_of = [](ErrorCode code) {
    const std::string body = net::anthropic::error_response({code, "x", ""}).body;
    const std::size_t at = body.find(R"("error":{"type":")") + 17;
    return body.substr(at, body.find('"', at) - at);
  };
  EXPECT_EQ(type_of(ErrorCode::kTimeout), "timeout_error");
  EXPECT_EQ(type_of(ErrorCode::kOverloaded), "rate_limit_error");
  EXPECT_EQ(type_of(ErrorCode::kDraining), "overloaded_error");
}

TEST(Messages, BlocksBecomeChatMessages) {
  ValueList chat;
  const Value assistant =
      ValueDict{{"role", "assistant"},
                {"content", ValueList{ValueDict{{"type", "thinking"}, {"thinking", "hm"}, {"signature", ""}},
                                      ValueDict{{"type", "text"}, {"text", "t"}},
                                      ValueDict{{"type", "tool_use"}, {"id", "c"}, {"name", "f"}, {"input", ValueDict{{"x", 1}}}}}}};
  const Value user = ValueDict{{"role", "user"},
                               {"content", ValueList{ValueDict{{"type", "tool_result"}, {"tool_use_id", "c"}, {"content", "r"}},
                                                     ValueDict{{"type", "text"}, {"text", "and"}}}}};
  net::anthropic::Gleaned gleaned;
  ASSERT_TRUE(net::anthropic::append_message(chat, assistant, "messages[0]", gleaned));
  ASSERT_TRUE(net::anthropic::append_message(chat, user, "messages[1]", gleaned));
  ASSERT_EQ(chat.size(), 3U);
  EXPECT_EQ(*chat[0].find("reasoning_content"), Value("hm"));
  const Value& call = chat[0].find("tool_calls")->get_if<ValueList>()->front();
  EXPECT_EQ(*call.find("function")->find("arguments"), Value(ValueDict{{"x", 1}}));
  EXPECT_EQ(*chat[1].find("role"), Value("tool"));
  EXPECT_EQ(*chat[2].find("content"), Value("and"));
}

// What parse_message() makes of a message with these further members.
Result<net::GenerationCall> message_with(const std::string& members) {
  std::string body = R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],)" + members + "}";
  return read_text(net::anthropic::read_message, body, kFakeModel);
}

TEST(Messages, MarksOfTheCacheReachTheEngine) {
  TestServer server;
  const std::string first = R"({"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]})";
  server.ask(post("/v1/messages",
                  R"({"max_tokens":3,"messages":[)" + first + R"(,{"role":"assistant","content":"b"},{"role":"user","content":"c"}]})"));
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted.at(0).marked_turns, std::vector<std::int32_t>{2}); });
}

// Of the turns of a prompt, counted from its end, those that a client marks.
TEST(Messages, MarksOfTheCacheNameTurns) {
  const std::string mark = R"(,"cache_control":{"type":"ephemeral"}})";
  const auto marked = [&](const std::string& system, const std::string& tool, const std::string& first, const std::string& result) {
    const std::string blocks = R"([{"role":"user","content":[{"type":"text","text":"a")" + first + R"(,{"type":"text","text":"b"}]},)" +
                               R"({"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},)" +
                               R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r")" + result + R"(]},)" +
                               R"({"role":"assistant","content":"d"},{"role":"user","content":"e"}])";
    const std::string tools = R"(,"tools":[{"name":"f","input_schema":{"type":"object"})" + tool + "]";
    const std::string body = R"({"max_tokens":9,"messages":)" + blocks + tools + system + "}";
    return read_text(net::anthropic::read_message, body, kFakeModel).value().marked_turns;
  };
  using Turns = std::vector<std::int32_t>;
  const std::string system = R"(,"system":[{"type":"text","text":"s")";
  EXPECT_EQ(marked("", "}", "}", "}"), Turns{});
  EXPECT_EQ(marked("", "}", mark, "}"), Turns{4});
  EXPECT_EQ(marked("", "}", mark, mark), (Turns{2, 4}));
  EXPECT_EQ(marked(system + mark + "]", "}", "}", mark), (Turns{2, 5}));
  EXPECT_EQ(marked(system + "}]", mark, "}", "}"), Turns{5}) << "tools stand in the system's turn";
  EXPECT_EQ(marked("", mark, "}", "}"), Turns{5}) << "or in one that the template makes";
}

TEST(Messages, ASchemaOfTheAnswerIsHonoured) {
  const std::string format = R"({"type":"json_schema","schema":{"type":"object"}})";
  for (const std::string& members : {R"("output_config":{"effort":"low","format":)" + format + "}", R"("output_format":)" + format}) {
    const auto call = message_with(members);
    ASSERT_TRUE(call) << members;
    ASSERT_TRUE(call->constraint_spec) << members;
    const auto* json = std::get_if<ConstraintSpec::JsonSchema>(&call->constraint_spec->kind);
    ASSERT_NE(json, nullptr);
    EXPECT_EQ(json->schema, Value(ValueDict{{"type", "object"}}));
  }
  for (const char* none : {R"("output_config":null)", R"("output_config":{"format":null})", R"("output_format":null)"})
    EXPECT_FALSE(message_with(none)->constraint_spec) << none;
  for (const char* wrong : {R"("output_config":1)", R"("output_config":{"format":"json"})", R"("output_format":{"type":"xml"})",
                            R"("output_format":{"type":"json_schema"})"})
    EXPECT_FALSE(message_with(wrong)) << wrong;
}

TEST(Messages, ThinkingIsSwitchedBesideTheTemplatesOtherVariables) {
  const std::string thinking = R"("thinking":{"type":"disabled"})";
  const std::string kwargs = R"("chat_template_kwargs":{"x":1,"thinking":true})";
  for (const std::string& members : {thinking + "," + kwargs, kwargs + "," + thinking}) {
    const auto call = message_with(members);
    ASSERT_TRUE(call) << members;
    EXPECT_EQ(std::get<ChatPrompt>(call->prompt).kwargs, Value(ValueDict{{"x", 1}, {"thinking", true}, {"enable_thinking", false}}));
  }
  const Value enabled = std::get<ChatPrompt>(message_with(R"("thinking":{"type":"enabled","budget_tokens":5})")->prompt).kwargs;
  EXPECT_EQ(*enabled.find("thinking"), Value(true));
  EXPECT_EQ(*enabled.find("thinking_budget"), Value(5));
  EXPECT_FALSE(message_with(thinking + R"(,"chat_template_kwargs":1)"));
  EXPECT_EQ(*std::get<ChatPrompt>(message_with(R"("thinking":{"type":"adaptive"})")->prompt).kwargs.find("thinking"), Value(true));
  EXPECT_EQ(message_with(R"("thinking":{"type":"off"})").error().param, "thinking.type");
}

TEST(Messages, WhatSaysNothingHasItsTypeAllTheSame) {
  for (const char* wrong : {R"("metadata":1)", R"("service_tier":1)"}) EXPECT_FALSE(message_with(wrong)) << wrong;
  EXPECT_TRUE(message_with(R"("metadata":{"user_id":"u"},"service_tier":"auto")"));
}

TEST(Messages, AStrictToolIsOne) {
  const auto call = message_with(R"("tools":[{"name":"f","strict":true},{"name":"g"}])");
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->tools->functions[0].strict);
  EXPECT_FALSE(call->tools->functions[1].strict);
}

}  // namespace
}  // namespace braid::test
