// A client that goes away takes its request with it, in every phase.
#include "net/test_server.h"

#include <gtest/gtest.h>

namespace braid::test {
namespace {

using namespace std::chrono_literals;

enum class Leave { kFin, kReset };

class Disconnect : public testing::TestWithParam<std::tuple<bool, Leave>> {
 protected:
  Disconnect() {
    server.on_loop([&] { server.engine().script = nullptr; });
    body = std::get<0>(GetParam()) ? R"({"prompt":"a","stream":true})" : R"({"prompt":"a"})";
  }

  void leave(RawClient& client) { std::get<1>(GetParam()) == Leave::kFin ? client.finish_sending() : client.reset(); }

  bool everything_ends() {
    return server.eventually([&] { return server.engine().live.empty() && server.server().open_connections() == 0; });
  }

  TestServer server;
  std::string body;
};

TEST_P(Disconnect, BeforeTheFirstToken) {
  RawClient client = server.connect();
  client.send(post("/v1/completions", body));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  leave(client);
  EXPECT_TRUE(everything_ends());
  server.on_loop([&] { EXPECT_EQ(server.engine().cancelled, 1U); });
}

TEST_P(Disconnect, BetweenTokens) {
  RawClient client = server.connect();
  client.send(post("/v1/completions", body));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.engine().push(0, Token{'x', 0.0F, {}}); });
  leave(client);
  EXPECT_TRUE(everything_ends());
  server.on_loop([&] { EXPECT_EQ(server.engine().cancelled, 1U); });
}

TEST_P(Disconnect, WithSeveralChoices) {
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":["a","b","c"],"stream":true})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 3; }));
  server.on_loop([&] { server.engine().push(1, Token{'x', 0.0F, {}}); });
  leave(client);
  EXPECT_TRUE(everything_ends());
  server.on_loop([&] { EXPECT_EQ(server.engine().cancelled, 3U); });
}

TEST_P(Disconnect, WhileALongPromptIsTokenised) {
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":")" + std::string(50'000, 'a') + R"("})"));
  leave(client);
  EXPECT_TRUE(everything_ends());
}

TEST_P(Disconnect, InTheMiddleOfARequest) {
  RawClient client = server.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n{");
  ASSERT_TRUE(server.eventually([&] { return server.server().open_connections() == 1; }));
  leave(client);
  EXPECT_TRUE(everything_ends());
}

INSTANTIATE_TEST_SUITE_P(EachWay, Disconnect, testing::Combine(testing::Bool(), testing::Values(Leave::kFin, Leave::kReset)));

TEST(Backpressure, AStalledReaderIsDroppedAfterTheDeadline) {
  net::ServerOptions options = test_options();
  options.write_timeout = 50ms;
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect(4096);
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] {
    for (int i = 0; i < 100'000; ++i) server.engine().push(0, Token{'x', 0.0F, {}});
  });
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty() && server.server().open_connections() == 0; }));
  EXPECT_NE(server.ask(get("/metrics")).body.find("braid_timeouts_total{kind=\"write\"} 1\n"), std::string::npos);
}

// What a client has not received is in the two buffers of client_buffer_bytes, or has not been taken from the engine.
TEST(Backpressure, WhatWaitsForAClientIsBoundedInBytes) {
  constexpr std::size_t kReceiveBuffer = 8192;
  constexpr std::size_t kTokens = 100'000;
  net::ServerOptions options = test_options();
  options.client_buffer_bytes = 8192;
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect(kReceiveBuffer);
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true,"max_tokens":900})", "Connection: close\r\n"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] {
    for (std::size_t i = 0; i < kTokens; ++i) server.engine().push(0, Token{'x', 0.0F, {}});
    server.engine().push(0, Finish{});
  });
  const auto backlog = [&] { return figure(server.ask(get("/metrics")).body, "braid_client_backlog_bytes"); };
  double waiting = 0.0;
  for (int i = 0; i < 10'000 && waiting == 0.0; ++i) waiting = backlog();
  constexpr std::size_t kMostOfAnEvent = 512;
  EXPECT_GT(waiting, 0.0);
  EXPECT_LE(waiting, static_cast<double>(options.client_buffer_bytes + kMostOfAnEvent));
  std::size_t taken = 0;
  server.on_loop([&] { taken = kTokens + 1 - server.engine().backlog(0); });
  constexpr std::size_t kLeastOfAnEvent = 64;
  const std::size_t of_the_system = 2 * (options.client_buffer_bytes + kReceiveBuffer);  // Linux doubles both
  EXPECT_LE(taken * kLeastOfAnEvent, options.client_buffer_bytes + kMostOfAnEvent + of_the_system);
  const std::string answer = client.read_to_close();
  std::size_t count = 0;
  for (std::size_t at = answer.find("\"x\""); at != std::string::npos; at = answer.find("\"x\"", at + 1)) ++count;
  EXPECT_EQ(count, kTokens);
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
  EXPECT_EQ(backlog(), 0.0);
}

TEST(Backpressure, WhatTheSocketDidNotTakeNeedsNoOtherTokenToFollow) {
  net::ServerOptions options = test_options();
  options.client_buffer_bytes = 8192;
  options.ping_interval = 1h;
  options.write_timeout = 1h;
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect(8192);
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true,"max_tokens":900})", "Connection: close\r\n"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  std::size_t pushed = 0;
  while (figure(server.ask(get("/metrics")).body, "braid_client_backlog_bytes") == 0.0 && pushed < 100'000) {
    for (int i = 0; i < 100; ++i, ++pushed) server.on_loop([&] { server.engine().push(0, Token{'x', 0.0F, {}}); });
  }
  EXPECT_LT(pushed, 100'000U);
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  const std::string answer = client.read_to_close();
  std::size_t count = 0;
  for (std::size_t at = answer.find("\"x\""); at != std::string::npos; at = answer.find("\"x\"", at + 1)) ++count;
  EXPECT_EQ(count, pushed);
}

TEST(Backpressure, ASlowReaderGetsEverything) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of(std::string(20'000, 'x')); }; });
  RawClient client = server.connect(4096);
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true,"max_tokens":900})"));
  const Reply reply = client.read_reply();
  std::size_t count = 0;
  for (std::size_t at = reply.body.find("\"x\""); at != std::string::npos; at = reply.body.find("\"x\"", at + 1)) ++count;
  EXPECT_EQ(count, 20'000U);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
}

// Its end is beyond what is read at once.
TEST(Pipelining, AFloodIsReadInPieces) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  ASSERT_TRUE(server.eventually([&] { return server.server().open_connections() == 1; }));
  server.on_loop([&] {
    client.send(post("/v1/completions", R"({"prompt":"a"})") + std::string(60'000, 'x'));
    client.finish_sending();
  });
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
  server.on_loop([&] {
    EXPECT_EQ(server.engine().submitted.size(), 1U) << "all was read before the request was";
    EXPECT_EQ(server.engine().cancelled, 1U);
  });
}

TEST(Pipelining, ARequestSentWhileAnotherRunsSurvives) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":"a"})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  client.send(get("/health"));
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
}

}  // namespace
}  // namespace braid::test
