#include "net/http/error_response.h"
#include "net/http/request_reader.h"
#include "net/test_server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

namespace braid::test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kShortBody = R"({"prompt":"a"})";

TEST(Http, ProbesAnswer) {
  TestServer server;
  EXPECT_EQ(server.ask(get("/health")).body, R"({"status":"ok"})");
  EXPECT_EQ(server.ask(get("/v1/livez")).status, 200);
  EXPECT_EQ(server.ask(get("/readyz?verbose")).status, 200);
}

TEST(Http, EachStatusHasItsPhrase) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    const int status = net::http::status_of(static_cast<ErrorCode>(code));
    EXPECT_NE(net::http::reason_phrase(status), "Unknown") << status;
  }
  EXPECT_EQ(net::http::reason_phrase(201), "Created");  // of a blob that is whole now
}

TEST(Http, ReadyzNamesTheReason) {
  TestServer server;
  server.on_loop([&] { server.status() = {ServiceState::kLoading, "weights: 40%", {}}; });
  const Reply loading = server.ask(get("/readyz"));
  EXPECT_EQ(loading.status, 503);
  EXPECT_EQ(loading.body, R"({"status":"unavailable","reasons":["weights: 40%"]})");
  server.on_loop([&] { server.status() = {ServiceState::kDraining, "", {}}; });
  EXPECT_EQ(server.ask(get("/readyz")).status, 503);
}

TEST(Http, HealthAndPingAreReadinessAndLivezIsNot) {
  struct Case {
    ServiceState state;
    int status;
    std::string_view body;
  };
  const Case cases[] = {
      {ServiceState::kReady, 200, R"({"status":"ok"})"},
      {ServiceState::kNoModel, 200, R"({"status":"ok"})"},
      {ServiceState::kLoading, 503, R"({"status":"unavailable","reasons":["the model is being loaded"]})"},
      {ServiceState::kLeaving, 503, R"({"status":"unavailable","reasons":["the server is shutting down"]})"},
      {ServiceState::kDraining, 503, R"({"status":"unavailable","reasons":["the server is shutting down"]})"},
      {ServiceState::kFailed, 503, R"({"status":"unavailable","reasons":["the model could not be loaded"]})"},
      {ServiceState::kLate, 503, R"({"status":"unavailable","reasons":["a step takes too long"]})"},
  };
  TestServer server;
  for (const Case& expected : cases) {
    server.on_loop([&] { server.status().state = expected.state; });
    for (const std::string_view path : {"/health", "/v1/health", "/ping"}) {
      const Reply reply = server.ask(get(path));
      EXPECT_EQ(reply.status, expected.status) << expected.body;
      EXPECT_EQ(reply.body, expected.body);
    }
    EXPECT_EQ(server.ask(get("/livez")).status, 200);
  }
}

TEST(Http, VersionIsTheServers) {
  net::ServerOptions options = test_options();
  options.version = "1.2.3";
  TestServer server(options);
  EXPECT_EQ(server.ask(get("/version")).body, R"({"version":"1.2.3"})");
}

TEST(Http, SlashesTooManyReachTheRoute) {
  TestServer server;
  for (const std::string_view path : {"//v1/models", "/v1//models", "/v1/models/", "/models//", "//v1///models//?a=b//"})
    EXPECT_EQ(server.ask(get(path)).body, server.ask(get("/v1/models")).body) << path;
  for (const std::string_view path : {"/v1//chat/completions/", "//chat//completions"})
    EXPECT_EQ(server.ask(post(path, R"({"messages":[{"role":"user","content":"a"}]})")).status, 200) << path;
  EXPECT_EQ(server.ask(get("/v1//models/fake-model/")).status, 200);
  for (const std::string_view path : {"/", "//", "/v1/", "/v1//"}) EXPECT_EQ(server.ask(get(path)).body, "Ollama is running") << path;
}

TEST(Http, ModelsAreListedAndShown) {
  TestServer server;
  const Reply list = server.ask(get("/v1/models"));
  EXPECT_EQ(list.body, R"({"object":"list","data":[{"id":"fake-model","object":"model","created":1700000000,"owned_by":"braid",)"
                       R"("max_model_len":1000,"meta":{"architecture":"fake","n_params":42,"n_vocab":259}}]})");
  EXPECT_EQ(server.ask(get("/models/fake%2dmodel")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models/default")).status, 200);
  const Reply unknown = server.ask(get("/v1/models/org/other"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find(R"("code":"model_not_found")"), std::string::npos);
  server.on_loop([&] { server.status() = {ServiceState::kNoModel, "", {}}; });
  EXPECT_EQ(server.ask(get("/v1/models")).body, R"({"object":"list","data":[]})");
}

TEST(Http, UnknownRoutesAndMethodsAreRefused) {
  TestServer server;
  const Reply route = server.ask(get("/v1/nothing"));
  EXPECT_EQ(route.status, 404);
  EXPECT_EQ(route.body,
            R"({"error":{"message":"there is no route /v1/nothing","type":"invalid_request_error","param":null,"code":"not_found"}})");
  const Reply method = server.ask(get("/v1/completions"));
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(server.ask("DELETE /v1/models HTTP/1.1\r\nHost: a\r\n\r\n").status, 405);
  EXPECT_EQ(server.ask("PUT /v1/responses/x HTTP/1.1\r\nHost: a\r\n\r\n").headers.at("allow"), "POST, GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(server.ask(post("/v1/responses/x", "{}")).body,
            R"({"error":{"message":"there is no route /responses/x","type":"invalid_request_error","param":null,"code":"not_found"}})");
  const Reply options = server.ask("OPTIONS /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(server.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status, 204);
}

TEST(Http, HeadHasTheLengthAndNoBody) {
  TestServer server;
  RawClient client = server.connect();
  client.send("HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n" + get("/health"));
  const Reply head = client.read_reply(true);
  EXPECT_EQ(head.headers.at("content-length"), "15");
  EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
}

TEST(Http, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  RawClient client = server.connect();
  client.send(post("/v1/completions", kShortBody) + get("/health") + post("/v1/completions", kShortBody) + get("/v1/nothing"));
  EXPECT_NE(client.read_reply().body.find("\"Hi\""), std::string::npos);
  EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
  EXPECT_NE(client.read_reply().body.find("\"Hi\""), std::string::npos);
  EXPECT_EQ(client.read_reply().status, 404);
}

TEST(Http, PipelinedRequestsLetOthersInBetween) {
  constexpr std::size_t kCount = 20;
  TestServer server;
  std::size_t seen = 0;
  std::size_t most_at_once = 0;
  std::function<void()> look = [&] {
    const std::size_t now = server.engine().submitted.size();
    most_at_once = std::max(most_at_once, now - std::exchange(seen, now));
    if (now < kCount) boost::asio::post(server.loop(), look);
  };
  RawClient client = server.connect();
  server.on_loop(look);
  std::string requests;
  for (std::size_t i = 0; i < kCount; ++i) requests += post("/v1/completions", R"({"prompt":"a"})");
  client.send(requests);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(client.read_reply().status, 200);
  server.on_loop([&] { EXPECT_EQ(most_at_once, 1U); });
}

TEST(Http, TheLastAnswerIsReadToItsEndWhateverFollowedItsRequest) {
  net::ServerOptions options = test_options();
  options.linger_timeout = std::chrono::seconds(10);
  TestServer server(options);
  RawClient client = server.connect(2048);  // takes less than the answer
  std::string requests = get("/metrics", "Connection: close\r\n");
  for (int i = 0; i < 500; ++i) requests += get("/health");
  client.send(requests);
  ASSERT_TRUE(server.eventually([&] { return server.server().open_connections() == 1 && server.server().running_requests() == 0; }));
  const Reply reply = client.read_reply();
  EXPECT_EQ(std::to_string(reply.body.size()), reply.headers.at("content-length"));
}

TEST(Http, ALargePipelinedRequestDoesNotHideThatTheClientGoes) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", kShortBody) + post("/v1/completions", std::string(90'000, ' ')));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  client.finish_sending();
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
}

TEST(Http, AnEmptyLineBehindABodyBeginsNoRequest) {
  net::ServerOptions options = test_options();
  options.header_timeout = std::chrono::milliseconds(20);
  TestServer server(options);
  RawClient client = server.connect();
  client.send(post("/v1/completions", kShortBody) + "\r\n");
  EXPECT_EQ(client.read_reply().status, 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(80));  // longer than a request's header may take
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(Http, AbsoluteTargetsAreTaken) {
  TestServer server;
  EXPECT_EQ(server.ask(get("http://example.org:80/health?x=http://y/z")).status, 200);
  EXPECT_EQ(server.ask(get("https://example.org/v1/models")).status, 200);
  EXPECT_EQ(server.ask(get("http://example.org")).body, "Ollama is running");
  EXPECT_EQ(server.ask(get("http://example.org?next=/health")).body, "Ollama is running");
  EXPECT_EQ(server.ask(get("/v1/models/a://b")).status, 404);
}

TEST(Http, ARequestMayArriveByteByByte) {
  TestServer server;
  RawClient client = server.connect();
  for (const char c : "\r\n" + post("/v1/completions", kShortBody)) client.send(std::string_view(&c, 1));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(Http, ChunkedRequestBodiesAreRead) {
  TestServer server;
  RawClient client = server.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n{\"pro\r\n");
  client.send("9\r\nmpt\":\"a\"}\r\n0\r\nTrailer: t\r\n\r\n" + get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
}

// Beast asserts that the last chunk's header comes with all of what ends the body; here it comes byte by byte.
TEST(Http, AnEmptyChunkedBodyMayArriveByteByByte) {
  net::http::RequestReader reader({1000, 1000});
  const std::string request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  std::string unread;
  for (const char c : request) {
    EXPECT_EQ(reader.stage() == net::http::RequestReader::Stage::kComplete, false);
    unread += c;
    unread.erase(0, reader.feed(unread));
  }
  EXPECT_EQ(reader.stage(), net::http::RequestReader::Stage::kComplete);
  EXPECT_EQ(unread, "");
}

TEST(Http, ExpectContinueIsAnsweredBeforeTheBody) {
  TestServer server;
  RawClient client = server.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(kShortBody);
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(Http, ABodyThatIsTooLargeIsRefusedBeforeItIsSent) {
  TestServer server;
  RawClient client = server.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 100001\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 413);
  EXPECT_TRUE(client.closed());
}

TEST(Http, AChunkedBodyThatIsTooLargeIsRefused) {
  TestServer server;
  RawClient client = server.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1ffff\r\n" + std::string(0x1ffff, ' '));
  EXPECT_EQ(client.read_reply().status, 413);
}

TEST(Http, HeadersThatAreTooLargeAreRefused) {
  TestServer server;
  RawClient client = server.connect();
  client.send("GET /health HTTP/1.1\r\nHost: a\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 431);
  EXPECT_TRUE(client.closed());
}

TEST(Http, ChunkExtensionsAndTrailersThatAreTooLargeAreRefused) {
  TestServer server;
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string much(70'000, 'x');
  EXPECT_EQ(server.ask(head + "5;x=" + much).status, 431);
  EXPECT_EQ(server.ask(head + "1\r\n{\r\n0\r\nTrailer: " + much).status, 431);
}

TEST(Http, WhatIsNotHttpIsRefused) {
  TestServer server;
  EXPECT_EQ(server.ask("hello\r\n\r\n").status, 400);
  EXPECT_EQ(server.ask("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc").status, 400);
  EXPECT_EQ(server.ask("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nabc").status, 400);
  EXPECT_EQ(server.ask("GET /health HTTP/2.0\r\n\r\n").status, 400);
}

TEST(Http, Http10ClosesUnlessAskedToKeepAlive) {
  TestServer server;
  RawClient closing = server.connect();
  closing.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_NE(closing.read_to_close().find("Connection: close"), std::string::npos);
  RawClient keeping = server.connect();
  keeping.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(keeping.read_reply().headers.at("connection"), "keep-alive");
  keeping.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(keeping.read_reply().status, 200);
}

// RFC 9112, 9.3 and 9.6: options are a list, in one field or several, in any case.
TEST(Http, OneCloseAmongTheOptionsOfAConnectionEndsIt) {
  TestServer server;
  for (const std::string version : {"1.0", "1.1"})
    for (const std::string options : {"close", "CLOSE", "keep-alive, close", "close, keep-alive", "Keep-Alive\r\nConnection: foo, Close"}) {
      RawClient client = server.connect();
      client.send("GET /health HTTP/" + version + "\r\nHost: a\r\nConnection: " + options + "\r\n\r\n");
      EXPECT_EQ(client.read_reply().headers.at("connection"), "close") << version << " " << options;
      EXPECT_TRUE(client.closed()) << version << " " << options;
    }
  RawClient client = server.connect();
  client.send("GET /health HTTP/1.0\r\nConnection: te\r\nConnection: KEEP-ALIVE\r\n\r\n");
  EXPECT_EQ(client.read_reply().headers.at("connection"), "keep-alive");
}

// As a client may send 32 MiB of them behind another request.
TEST(Http, ManySmallChunksAreReadInTurns) {
  constexpr std::size_t kChunks = 20'000;
  std::string request = "POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t i = 0; i < kChunks; ++i) request += "1\r\na\r\n";
  request += "0\r\n\r\n";
  net::http::RequestReader reader({1000, 100'000});
  std::size_t turns = 0;
  for (std::string_view rest = request; reader.stage() < net::http::RequestReader::Stage::kComplete; ++turns) {
    const std::size_t used = reader.feed(rest);
    ASSERT_LT(used, 10'000U);
    rest.remove_prefix(used);
    ASSERT_TRUE(reader.has_paused() || rest.empty());
  }
  EXPECT_EQ(reader.take().body, std::string(kChunks, 'a'));
  EXPECT_GT(turns, 10U);
}

TEST(Http, ABodyOfManySmallChunksArrivesBehindAnotherRequest) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", kShortBody));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  std::string chunked = "POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : R"({"content":")" + std::string(20'000, 'a') + "\"}") chunked += std::string("1\r\n") + c + "\r\n";
  client.send(chunked + "0\r\n\r\n" + get("/health"));
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  EXPECT_EQ(client.read_reply().status, 200);
  const Reply tokens = client.read_reply();
  EXPECT_EQ(tokens.status, 200) << tokens.body;
  EXPECT_GT(tokens.body.size(), 20'000U);
  EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
}

TEST(Http, ABodyThatIsRefusedBelongsToARequestThatIsKnown) {
  net::ServerOptions options = test_options();
  options.body_timeout = 30ms;
  options.cors_origins = {"*"};
  TestServer server(options);
  const std::string known = "Host: a\r\nX-Request-Id: mine\r\nOrigin: https://a.example\r\n";
  const std::pair<std::string, int> requests[] = {
      {"Content-Length: 100000000\r\n\r\n", 413},
      {"Transfer-Encoding: chunked\r\n\r\n"
       "fffffff\r\n" +
           std::string(150'000, 'a'),
       413},
      {"Content-Length: 9\r\n\r\n{", 408},
      {"Transfer-Encoding: chunked\r\n\r\nnone\r\n", 400},
  };
  for (const auto& [rest, status] : requests) {
    const Reply reply = server.ask("POST /v1/completions HTTP/1.1\r\n" + known + rest);
    EXPECT_EQ(reply.status, status);
    ASSERT_TRUE(reply.headers.contains("x-request-id"));
    EXPECT_EQ(reply.headers.at("x-request-id"), "mine") << status;
    EXPECT_TRUE(reply.headers.contains("access-control-allow-origin")) << status;
  }
}

TEST(Http, RequestIdsComeBackUnlessTheyAreUnfit) {
  TestServer server;
  EXPECT_EQ(server.ask(get("/health", "X-Request-Id: my-id\r\n")).headers.at("x-request-id"), "my-id");
  EXPECT_EQ(normalized(server.ask(get("/health", "X-Request-Id: a b\r\n")).headers.at("x-request-id")), "req-ID");
}

TEST(Http, AHeaderThatNeverEndsTimesOut) {
  net::ServerOptions options = test_options();
  options.header_timeout = 30ms;
  TestServer server(options);
  RawClient client = server.connect();
  client.send("GET /health HTTP/1.1\r\nHost");
  EXPECT_EQ(client.read_reply().status, 408);
  EXPECT_TRUE(client.closed());
}

TEST(Http, AHeaderThatTricklesInTimesOut) {
  net::ServerOptions options = test_options();
  options.header_timeout = 30ms;
  TestServer server(options);
  RawClient client = server.connect();
  client.send("GET /health HTTP/1.1\r\nHost: a\r\nX: ");
  ASSERT_TRUE(server.eventually([&] { return server.server().open_connections() == 1; }));
  EXPECT_TRUE(server.eventually([&] {
    client.send("x");
    return server.server().open_connections() == 0;
  }));
  EXPECT_EQ(client.read_reply().status, 408);
}

TEST(Http, ABodyThatNeverEndsTimesOut) {
  net::ServerOptions options = test_options();
  options.body_timeout = 30ms;
  TestServer server(options);
  RawClient client = server.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n{");
  EXPECT_EQ(client.read_reply().status, 408);
}

TEST(Http, AnIdleConnectionIsClosedSilently) {
  net::ServerOptions options = test_options();
  options.idle_timeout = 30ms;
  TestServer server(options);
  RawClient client = server.connect();
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_to_close(), "");
}

TEST(Http, MetricsAreExposed) {
  TestServer server;
  server.ask(post("/v1/completions", kShortBody));
  const Reply reply = server.ask(get("/metrics"));
  EXPECT_EQ(reply.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const std::string_view line :
       {"braid_requests_total{route=\"/completions\",status=\"200\"} 1\n", "braid_time_to_first_token_ms_count 1\n",
        "braid_active_requests 1\n", "braid_open_streams 0\n", "braid_kv_blocks_total 64\n", "process_resident_memory_bytes ",
        "braid_request_duration_ms_bucket{le=\"+Inf\"} 1\n"})
    EXPECT_NE(reply.body.find(line), std::string::npos) << line << " in\n" << reply.body;
}

TEST(Http, CloseIdleSparesRunningRequestsAndEndsTheirConnections) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient idle = server.connect();
  idle.send(get("/health"));
  EXPECT_EQ(idle.read_reply().status, 200);
  RawClient busy = server.connect();
  busy.send(post("/v1/completions", kShortBody));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.server().close_idle(); });
  EXPECT_TRUE(idle.closed());
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  EXPECT_EQ(busy.read_reply().headers.at("connection"), "close");
  EXPECT_TRUE(busy.closed());
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
}

TEST(Http, CloseAnsweredWaitsForAnotherRequest) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient idle = server.connect();
  idle.send(get("/health"));
  EXPECT_EQ(idle.read_reply().headers.count("connection"), 0U);
  RawClient busy = server.connect();
  busy.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  EXPECT_EQ(busy.read_until("\r\n\r\n").find("Connection"), std::string::npos);
  server.on_loop([&] {
    server.server().close_answered();
    server.engine().push(0, Finish{});
  });
  busy.read_until("data: [DONE]\n\n\r\n0\r\n\r\n");
  for (RawClient* client : {&idle, &busy}) {
    client->send(get("/health"));
    EXPECT_EQ(client->read_reply().headers.at("connection"), "close");
    EXPECT_TRUE(client->closed());
  }
}

TEST(Http, CloseIdleAnswersARequestThatHasArrived) {
  TestServer server;
  RawClient client = server.connect();
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
  server.on_loop([&] {
    client.send(get("/health"));
    server.server().close_idle();
  });
  EXPECT_EQ(client.read_reply().headers.at("connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST(Http, CloseWaitingAnswersWholeRequestsAlone) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient busy = server.connect();
  busy.send(post("/v1/completions", kShortBody));
  const std::string half = post("/v1/completions", kShortBody).substr(0, 60);
  RawClient fresh = server.connect(), begun = server.connect(), idle = server.connect();
  begun.send(half);
  idle.send(get("/health"));
  EXPECT_EQ(idle.read_reply().status, 200);
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1 && server.server().open_connections() == 4; }));
  server.on_loop([&] {
    server.server().close_waiting();
    server.server().close_idle();  // as at the end of a drain
    server.engine().push(0, Finish{});
  });
  for (RawClient* client : {&fresh, &begun, &idle}) EXPECT_TRUE(client->closed());
  EXPECT_EQ(busy.read_reply().status, 200);
  RawClient late = server.connect();
  EXPECT_TRUE(late.closed());
}

TEST(Http, StartNamesAnAddressThatIsTaken) {
  TestServer server;
  server.on_loop([&] {
    net::ServerOptions options = test_options();
    options.listen = {{"host.invalid", 0}};
    net::Server other(server.loop(), options, server.status());
    const Result<std::uint16_t> started = other.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::kIo);
    EXPECT_NE(started.error().message.find("host.invalid"), std::string::npos);
  });
}

}  // namespace
}  // namespace braid::test
