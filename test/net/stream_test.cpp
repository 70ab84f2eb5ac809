// Byte-exact transcripts of event streams.
#include "net/test_server.h"

#include <gtest/gtest.h>

namespace braid::test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kChatBody = R"({"messages":[{"role":"user","content":"hello"}],"stream":true})";

std::string after(std::string text, std::string_view field) { return text.insert(text.size() - 1, field); }

TEST(Stream, ChatTranscriptIsExact) {
  TestServer server;
  RawClient client = server.connect();
  client.send(post("/v1/chat/completions", kChatBody, "X-Request-Id: abc\r\nConnection: close\r\n", "1.0"));
  EXPECT_EQ(
      normalized(client.read_to_close()),
      "HTTP/1.1 200 OK\r\nDate: NOW\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"
      "X-Request-Id: abc\r\nConnection: close\r\n\r\n"
      R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":0,"model":"fake-model","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":0,"model":"fake-model","choices":[{"index":0,"delta":{"content":"H"},"logprobs":null,"finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":0,"model":"fake-model","choices":[{"index":0,"delta":{"content":"i"},"logprobs":null,"finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":0,"model":"fake-model","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":105}]})"
      "\n\ndata: [DONE]\n\n");
}

TEST(Stream, CompletionTranscriptWithUsageAndTokenIdsIsExact) {
  TestServer server;
  RawClient client = server.connect();
  client.send(post("/completions", R"({"prompt":[1,2,3],"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true})",
                   "X-Request-Id: abc\r\nConnection: close\r\n", "1.0"));
  const std::string text = client.read_to_close();
  EXPECT_EQ(
      normalized(text.substr(text.find("data: "))),
      R"(data: {"id":"cmpl-ID","object":"text_completion","created":0,"model":"fake-model","choices":[{"index":0,"text":"H","logprobs":null,"finish_reason":null,"token_ids":[72],"prompt_token_ids":[1,2,3]}],"usage":null})"
      "\n\n"
      R"(data: {"id":"cmpl-ID","object":"text_completion","created":0,"model":"fake-model","choices":[{"index":0,"text":"i","logprobs":null,"finish_reason":null,"token_ids":[105]}],"usage":null})"
      "\n\n"
      R"(data: {"id":"cmpl-ID","object":"text_completion","created":0,"model":"fake-model","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":105,"token_ids":[]}],"usage":null})"
      "\n\n"
      R"(data: {"id":"cmpl-ID","object":"text_completion","created":0,"model":"fake-model","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0}}})"
      "\n\ndata: [DONE]\n\n");
}

TEST(Stream, Http11IsChunkedAndTheConnectionLivesOn) {
  TestServer server;
  RawClient client = server.connect();
  client.send(post("/v1/chat/completions", kChatBody));
  const Reply first = client.read_reply();
  EXPECT_EQ(first.headers.at("transfer-encoding"), "chunked");
  EXPECT_TRUE(first.body.ends_with("data: [DONE]\n\n"));
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
}

TEST(Stream, PingsComeBeforeTheFirstTokenAndBetweenTokens) {
  net::ServerOptions options = test_options();
  options.ping_interval = 20ms;
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})", "Connection: close\r\n", "1.0"));
  client.read_until("\r\n\r\n");
  EXPECT_EQ(client.read_until("\n\n"), ": ping\n\n");
  server.on_loop([&] { server.engine().push(0, Token{'x', 0.0F, {}}); });
  EXPECT_NE(client.read_until("\"x\""), "");
  client.read_until("\n\n");
  EXPECT_EQ(client.read_until("\n\n"), ": ping\n\n");
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  EXPECT_TRUE(client.read_to_close().ends_with("data: [DONE]\n\n"));
}

TEST(Stream, NoChunkCarriesHalfACharacter) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("a\xF0\x9F\x98\x80"); }; });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","stream":true,"return_token_ids":true})"));
  EXPECT_NE(reply.body.find(R"("text":"a","logprobs":null,"finish_reason":null,"token_ids":[97])"), std::string::npos);
  EXPECT_NE(reply.body.find("\"text\":\"😀\",\"logprobs\":null,\"finish_reason\":null,\"token_ids\":[240,159,152,128]"), std::string::npos);
}

TEST(Stream, AStopStringEndsItAndNeverLeaks) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("one STOP two"); }; });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","stream":true,"stop":["STOP"]})"));
  EXPECT_EQ(reply.body.find(R"("text":"S)"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("finish_reason":"stop","stop_reason":"STOP","matched_stop":"STOP")"), std::string::npos);
  EXPECT_EQ(reply.body.find("two"), std::string::npos);
  server.on_loop([&] { EXPECT_EQ(server.engine().completed, 1U); });
}

TEST(Stream, TextHeldForAStopStringIsSentAtTheEnd) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("oneST", FinishReason::kLength); }; });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","stream":true,"stop":"STOP"})"));
  EXPECT_NE(reply.body.find(R"("text":"ST")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("finish_reason":"length")"), std::string::npos);
}

TEST(Stream, AnErrorAfterTheHeadersIsAnEventAndThenTheEnd) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      Finish finish;
      finish.reason = FinishReason::kError;
      finish.error = Error{ErrorCode::kInternal, "the step failed", ""};
      return std::vector<TokenEvent>{Token{'x', 0.0F, {}}, finish};
    };
  });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(
      reply.body.ends_with("data: {\"error\":{\"message\":\"the step "
                           "failed\",\"type\":\"server_error\",\"param\":null,\"code\":\"internal_error\"}}\n\n"));
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  EXPECT_FALSE(reply.headers.contains("connection"));
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);  // the end is the answer's: its head said that the connection stays
}

TEST(Stream, SeveralPromptsAreSeveralChoices) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest& request) { return events_of(request.sampling.choice == 0 ? "A" : "B"); };
  });
  const Reply reply =
      server.ask(post("/v1/completions", after(R"({"prompt":["x","yy"],"stream":true})", R"(,"stream_options":{"include_usage":true})")));
  EXPECT_NE(reply.body.find(R"({"index":0,"text":"A")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"({"index":1,"text":"B")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop",)"), std::string::npos);
  EXPECT_NE(reply.body.find(R"({"index":1,"text":"","logprobs":null,"finish_reason":"stop",)"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,)"), std::string::npos);
}

TEST(Stream, AStopStringOfOneChoiceLeavesTheOthersRunning) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":["x","y"],"stream":true,"stop":"Z"})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 2; }));
  server.on_loop([&] { server.engine().push(0, Token{'Z', 0.0F, {}}); });
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] {
    server.engine().push(1, Token{'q', 0.0F, {}});
    server.engine().push(1, Finish{});
  });
  const Reply reply = client.read_reply();
  EXPECT_NE(reply.body.find(R"({"index":1,"text":"q")"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
}

TEST(Stream, TwoHundredAtOnceAllComplete) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(server.connect());
    clients.back().send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  }
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 200; }));
  server.on_loop([&] { EXPECT_EQ(server.server().open_streams(), 200U); });
  for (const char c : std::string_view("token"))
    server.on_loop([&] {
      for (std::size_t i = 0; i < 200; ++i) server.engine().push(i, Token{c, 0.0F, {}});
    });
  server.on_loop([&] {
    for (std::size_t i = 0; i < 200; ++i) server.engine().push(i, Finish{});
  });
  for (RawClient& client : clients) {
    const Reply reply = client.read_reply();
    EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
    EXPECT_NE(reply.body.find(R"("text":"k")"), std::string::npos);
  }
}

}  // namespace
}  // namespace braid::test
