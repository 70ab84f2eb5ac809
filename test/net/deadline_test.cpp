// How long a generation may wait for its first step, for its first token and for its end.
#include "net/test_server.h"

#include <gmock/gmock.h>

namespace braid::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kWhole = R"({"prompt":"a"})";
constexpr std::string_view kStreamed = R"({"prompt":"a","stream":true})";

class Deadline : public testing::Test {
 protected:
  // A server whose requests neither start nor get tokens by themselves.
  static void hold(TestServer& server, bool started) {
    server.on_loop([&] {
      server.engine().script = nullptr;
      server.engine().started = started;
    });
  }
  static void expect_cancelled(TestServer& server) {
    EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
    server.on_loop([&] { EXPECT_EQ(server.engine().cancelled, 1U); });
  }
  net::ServerOptions options = test_options();
};

TEST_F(Deadline, InTheQueueIsA429) {
  options.queue_timeout = 30ms;
  TestServer server(options);
  hold(server, false);
  RawClient client = server.connect();
  client.send(post("/v1/completions", kWhole) + get("/health"));
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 429);
  EXPECT_TRUE(reply.headers.contains("retry-after"));
  EXPECT_THAT(reply.body, HasSubstr("waited in the queue"));
  EXPECT_EQ(client.read_reply().status, 200);  // the connection goes on
  expect_cancelled(server);
}

TEST_F(Deadline, InTheQueueOfAStreamIsAnErrorEvent) {
  options.queue_timeout = 30ms;
  TestServer server(options);
  hold(server, false);
  const Reply reply = server.ask(post("/v1/completions", kStreamed));
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("waited in the queue"));
  EXPECT_THAT(reply.body, HasSubstr("overloaded"));
  expect_cancelled(server);
}

TEST_F(Deadline, InTheQueueOfAResponseHasTheCodeOfARateLimit) {
  options.queue_timeout = 30ms;
  TestServer server(options);
  hold(server, false);
  const Reply reply = server.ask(post("/v1/responses", R"({"input":"a","stream":true})"));
  EXPECT_THAT(reply.body, HasSubstr(R"("status":"failed","model":"fake-model","error":{"code":"rate_limit_exceeded",)"));
}

TEST_F(Deadline, OfTheQueueSparesWhatHasStarted) {
  options.queue_timeout = 1ms;
  TestServer server(options);
  hold(server, true);
  RawClient client = server.connect();
  client.send(post("/v1/completions", kWhole));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  server.on_loop([&] {
    for (TokenEvent& event : events_of("Hi")) server.engine().push(0, std::move(event));
  });
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(Deadline, OfTheFirstTokenIsA504) {
  options.first_token_timeout = 30ms;
  TestServer server(options);
  hold(server, true);
  const Reply reply = server.ask(post("/v1/completions", kWhole));
  EXPECT_EQ(reply.status, 504);
  EXPECT_THAT(reply.body, HasSubstr("did not begin within 30ms"));
  expect_cancelled(server);
}

TEST_F(Deadline, OfTheWholeAnswerEndsAStreamWithAnErrorEvent) {
  options.first_token_timeout = 10min;
  options.request_timeout = 2s;
  TestServer server(options);
  hold(server, true);
  RawClient client = server.connect();
  client.send(post("/v1/completions", kStreamed));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.engine().push(0, Token{'x', 0.0F, {}}); });
  const Reply reply = client.read_reply();
  EXPECT_THAT(reply.body, HasSubstr("\"x\""));
  EXPECT_THAT(reply.body, HasSubstr("did not end within 2000ms"));
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);  // the connection goes on, as the stream's head said
  expect_cancelled(server);
}

TEST_F(Deadline, OfVectorsIsTheirOwn) {
  options.queue_timeout = 10min;
  options.embedding_timeouts = {.queue = 30ms, .total = 0ms};
  TestServer server(options);
  hold(server, false);
  const Reply reply = server.ask(post("/v1/embeddings", R"({"input":"a"})"));
  EXPECT_EQ(reply.status, 429);
  EXPECT_THAT(reply.body, HasSubstr("waited in the queue for more than 30ms"));
  expect_cancelled(server);
}

// Whose own limits are not said has those of generations; 0 is none at all.
TEST_F(Deadline, OfGenerationsSparesVectorsThatHaveNone) {
  options.request_timeout = 30ms;
  TestServer limited(options);
  hold(limited, true);
  EXPECT_EQ(limited.ask(post("/v1/embeddings", R"({"input":"a"})")).status, 504);
  options.embedding_timeouts.total = 0ms;
  TestServer server(options);
  hold(server, true);
  RawClient client = server.connect();
  client.send(post("/v1/embeddings", R"({"input":"a","encoding_format":"float"})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  EXPECT_EQ(server.ask(post("/v1/completions", kWhole)).status, 504);
  server.on_loop([&] {
    server.engine().push(0, PooledVector{{3.0F, 4.0F}});
    server.engine().push(0, Finish{});
  });
  EXPECT_EQ(client.read_reply().status, 200);
}

// A client of OpenAI's SDK gets the error of an event's "error" member as an exception.
TEST_F(Deadline, OfAResponseIsAFailureAndAnError) {
  options.first_token_timeout = 30ms;
  TestServer server(options);
  hold(server, true);
  const Reply reply = server.ask(post("/v1/responses", R"({"input":"a","stream":true})"));
  EXPECT_THAT(reply.body, HasSubstr("event: response.failed\n"));
  EXPECT_THAT(reply.body, HasSubstr(R"("code":"server_error","message":"the answer did not begin within 30ms","param":null,)"
                                    R"("error":{"message":"the answer did not begin within 30ms","type":"timeout_error",)"
                                    R"("param":null,"code":"timeout"}})"));
}

TEST_F(Deadline, HoldsForSeveralChoicesTogether) {
  options.first_token_timeout = 30ms;
  TestServer server(options);
  hold(server, false);
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":["a","b"]})")).status, 504);
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
}

}  // namespace
}  // namespace braid::test
