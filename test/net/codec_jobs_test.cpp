// Long requests wait for the codec worker: not too many of them, and none for a client that has left.
#include "net/test_server.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <latch>

namespace braid::test {
namespace {

// Encodes nothing until it is opened.
class GatedCodec final : public FakeCodec {
 public:
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override {
    ++calls;
    gate.wait();
    return FakeCodec::encode(text, options);
  }

  mutable std::atomic<int> calls{0};
  std::latch gate{1};
};

class CodecJobs : public testing::Test {
 protected:
  static net::ServerOptions two_jobs() {
    net::ServerOptions options = test_options();
    options.max_codec_jobs = 2;
    return options;
  }

  CodecJobs() {
    server.on_loop([&] {
      server.model().codec = &codec;
      server.model().context_length = 100'000;
    });
  }

  // Sends a long request and waits until the server has taken it.
  RawClient send_long(int long_requests) {
    RawClient client = server.connect();
    client.send(request);
    const std::string line = "braid_active_requests " + std::to_string(long_requests + 1) + "\n";  // and the one for the metrics
    bool taken = false;
    for (int i = 0; i < 1000 && !taken; ++i) taken = server.ask(get("/metrics")).body.find(line) != std::string::npos;
    EXPECT_TRUE(taken);
    return client;
  }

  const std::string request = post("/v1/completions", R"({"prompt":")" + std::string(50'000, 'a') + R"("})");
  GatedCodec codec;
  TestServer server{two_jobs()};
};

TEST_F(CodecJobs, AreRefusedAboveTheLimit) {
  RawClient first = send_long(1);
  RawClient second = send_long(2);
  const Reply refused = server.ask(request);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.count("retry-after"), 1U);
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":[97]})")).status, 200);
  codec.gate.count_down();
  EXPECT_EQ(first.read_reply().status, 200);
  EXPECT_EQ(second.read_reply().status, 200);
  EXPECT_EQ(server.ask(request).status, 200);
}

TEST_F(CodecJobs, DoNothingForAClientThatHasLeft) {
  RawClient first = send_long(1);
  EXPECT_TRUE(server.eventually([&] { return codec.calls == 1; }));
  RawClient second = send_long(2);
  server.on_loop([&] { server.server().abort_connections("a test"); });
  codec.gate.count_down();
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
  EXPECT_EQ(codec.calls, 1);
}

TEST_F(CodecJobs, SayThatTheirConnectionClosesIfTheServerHasBegunToMeanwhile) {
  RawClient client = server.connect();
  client.send(post("/tokenize", R"({"content":")" + std::string(50'000, 'a') + R"("})"));
  ASSERT_TRUE(server.eventually([&] { return codec.calls == 1; }));
  server.on_loop([&] { server.server().close_idle(); });
  codec.gate.count_down();
  EXPECT_EQ(client.read_reply().headers.count("connection"), 1U);
  EXPECT_TRUE(client.closed());
}

// Their answers come by another way than those of generations.
TEST_F(CodecJobs, DoNothingForATokenizationWhoseClientHasLeft) {
  RawClient first = send_long(1);
  EXPECT_TRUE(server.eventually([&] { return codec.calls == 1; }));
  {
    RawClient second = server.connect();
    second.send(post("/tokenize", R"({"content":")" + std::string(50'000, 'a') + R"("})"));
    EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 2; }));
    const std::string taken = "braid_active_requests 3\n";
    for (int i = 0; i < 1000 && server.ask(get("/metrics")).body.find(taken) == std::string::npos; ++i) {
    }
  }
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 1; })) << "its wait ends at once";
  const std::string metrics = server.ask(get("/metrics")).body;
  EXPECT_EQ(figure(metrics, "braid_client_disconnects_total"), 1);
  EXPECT_NE(metrics.find("braid_requests_refused_total{reason=\"draining\"} 0\n"), std::string::npos) << "nobody was answered";
  codec.gate.count_down();
  EXPECT_EQ(first.read_reply().status, 200);
  EXPECT_EQ(codec.calls, 1);
}

// A body of 10 KB is little, but its query stands beside each of its documents.
TEST_F(CodecJobs, AreMadeOfAQueryBesideManyDocuments) {
  server.on_loop([&] {
    server.model().classes.labels = {"fits"};
    server.model().pairs = PairForm::kJudgment;
    server.engine().script = [](const GenerationRequest&) { return std::vector<TokenEvent>{PooledVector{{1.0F}}, Finish{}}; };
  });
  std::string documents = R"("a")";
  for (int i = 0; i < 40; ++i) documents += R"(,"a")";
  RawClient client = server.connect();
  client.send(post("/v1/rerank", R"({"query":")" + std::string(10'000, 'q') + R"(","documents":[)" + documents + "]}"));
  EXPECT_TRUE(server.eventually([&] { return codec.calls == 1; }));
  EXPECT_EQ(server.ask(get("/health")).status, 200) << "the loop waits for nobody's texts";
  codec.gate.count_down();
  EXPECT_EQ(client.read_reply().status, 200);
}

// Nor is a body of a few KB that is rendered as many chats.
TEST_F(CodecJobs, RenderSeveralChats) {
  server.on_loop([&] {
    server.model().classes.labels = {"good"};
    server.engine().script = [](const GenerationRequest&) { return std::vector<TokenEvent>{PooledVector{{1.0F}}, Finish{}}; };
  });
  std::string chats = R"([{"role":"user","content":"a"}])";
  for (int i = 0; i < 40; ++i) chats += R"(,[{"role":"user","content":"a"}])";
  RawClient client = server.connect();
  client.send(post("/v1/rewards/score", R"({"messages":[)" + chats + "]}"));
  EXPECT_TRUE(server.eventually([&] { return codec.calls == 1; }));
  EXPECT_EQ(server.ask(get("/health")).status, 200) << "the loop waits for nobody's chats";
  codec.gate.count_down();
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(CodecJobs, EndAtTheirDeadlineBeforeTheirTurn) {
  net::ServerOptions options = two_jobs();
  options.request_timeout = std::chrono::milliseconds(50);
  TestServer hurried(options);
  hurried.on_loop([&] {
    hurried.model().codec = &codec;
    hurried.model().context_length = 100'000;
  });
  RawClient first = hurried.connect();
  first.send(request);
  EXPECT_TRUE(hurried.eventually([&] { return codec.calls == 1; }));
  const Reply late = hurried.ask(request);
  EXPECT_EQ(late.status, 504);
  EXPECT_NE(late.body.find("did not end within 50ms"), std::string::npos);
  codec.gate.count_down();
  EXPECT_EQ(first.read_reply().status, 504) << "it had begun";
  EXPECT_EQ(codec.calls, 1);
}

}  // namespace
}  // namespace braid::test
