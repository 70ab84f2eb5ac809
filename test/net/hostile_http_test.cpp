// What a client may put on the wire to trouble the server or those behind it.
#include "net/json/parse.h"
#include "net/test_server.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace braid::test {
namespace {

TEST(HostileHttp, ALongRequestIdIsReplaced) {
  TestServer server;
  const std::string fits(128, 'i');
  EXPECT_EQ(server.ask(get("/health", "X-Request-Id: " + fits + "\r\n")).headers.at("x-request-id"), fits);
  const Reply reply = server.ask(get("/health", "X-Request-Id: " + fits + "i\r\n"));
  EXPECT_EQ(normalized(reply.headers.at("x-request-id")), "req-ID");
}

TEST(HostileHttp, ARequestThatArrivesWhileTheServerClosesEndsItsConnection) {
  TestServer server;
  RawClient client = server.connect();
  const std::string request = get("/health");
  client.send(request);
  EXPECT_EQ(client.read_reply().status, 200);
  client.send(post("/v1/completions", R"({"prompt":"a"})") + request.substr(0, 9));
  EXPECT_EQ(client.read_reply().status, 200);
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
  server.on_loop([&] { server.server().close_idle(); });
  client.send(request.substr(9));
  const Reply last = client.read_reply();
  EXPECT_EQ(last.status, 200) << "it had begun before";
  EXPECT_EQ(last.headers.at("connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST(HostileHttp, AnErrorThatQuotesBytesIsUtf8) {
  TestServer server;
  const Reply reply = server.ask(get("/v1/models/a%ff%c0%afb"));
  EXPECT_EQ(reply.status, 404);
  std::string body = reply.body;
  const Result<Value> parsed = net::json::parse(body);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_NE(reply.body.find("a\xEF\xBF\xBD"), std::string::npos);
}

// The head of a completion with `framing`, a body that would be answered, and a request behind it.
std::string framed(std::string_view framing, std::string_view body = R"({"prompt":[1]})", std::string_view version = "1.1") {
  return "POST /v1/completions HTTP/" + std::string(version) + "\r\nHost: a\r\n" + std::string(framing) + "\r\n\r\n" + std::string(body) +
         get("/health");
}

void expect_refused(const TestServer& server, const std::string& request, int status) {
  RawClient client = server.connect();
  client.send(request);
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, status) << request;
  EXPECT_EQ(reply.headers.at("connection"), "close") << request;
  EXPECT_EQ(client.read_to_close(), "") << request;
}

// Two lengths, a length and chunks, or a coding that hides the length are read differently by a proxy and a server: whoever is between them
// sees another request.
TEST(HostileHttp, AmbiguousFramingIsRefused) {
  const TestServer server;
  for (const std::string_view framing :
       {"Transfer-Encoding: chunked\r\nContent-Length: 14", "Content-Length: 14\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity\r\nContent-Length: 14", "Content-Length: 14\r\nContent-Length: 15", "Content-Length: +14",
        "Content-Length: 14 \r\n Content-Length: 9"})
    expect_refused(server, framed(framing), 400);
  for (const std::string_view coding : {"gzip", "identity", "chunked, gzip", "chunked, identity", "xchunked", "\"chunked\"", ""})
    expect_refused(server, framed("Transfer-Encoding: " + std::string(coding)), 400);
  const std::string_view chunked = "e\r\n{\"prompt\":[1]}\r\n0\r\n\r\n";
  expect_refused(server, framed("Transfer-Encoding: chunked", chunked, "1.0"), 400);
  for (const std::string_view codings : {"chunked, chunked", "chunked\r\nTransfer-Encoding: chunked"})
    expect_refused(server, framed("Transfer-Encoding: " + std::string(codings), chunked), 400);
  expect_refused(server, framed("Transfer-Encoding: gzip, chunked", chunked), 501);
  RawClient client = server.connect();
  client.send(framed("Transfer-Encoding: chunked", chunked));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(HostileHttp, ARequestNamesOneHost) {
  const TestServer server;
  expect_refused(server, "GET /health HTTP/1.1\r\n\r\n", 400);
  expect_refused(server, "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
  EXPECT_EQ(server.ask("GET /health HTTP/1.0\r\n\r\n").status, 200);
}

// One that is reset while it sends gives up and never looks for the answer.
TEST(HostileHttp, ASlowUploaderMaySendItsRefusedRequestToItsEnd) {
  TestServer server;
  RawClient lost = server.connect(), large = server.connect();
  lost.send("POST /v1/none HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  large.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n");
  const auto until = std::chrono::steady_clock::now() + 3 * test_options().linger_timeout;
  bool taken = true;
  while (taken && std::chrono::steady_clock::now() < until) {
    taken = lost.send("aa") && large.send("aa");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(taken);
  EXPECT_EQ(lost.read_reply().status, 404);
  EXPECT_EQ(large.read_reply().status, 413);
}

// Beyond the time that is allowed for reading what is left of a refused body.
TEST(HostileHttp, UploadersThatFallSilentDoNotStay) {
  TestServer server;
  std::vector<RawClient> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(server.connect());
    clients.back().send("POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
  }
  const std::string piece(16'384, 'a');
  const auto until = std::chrono::steady_clock::now() + 2 * test_options().linger_timeout;
  while (std::chrono::steady_clock::now() < until)
    for (RawClient& client : clients) client.send(piece);
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
}

}  // namespace
}  // namespace braid::test
