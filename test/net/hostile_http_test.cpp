// What a client may put on the wire to trouble the server or those behind it.
#include <gtest/gtest.h>
#include <net/json/parse.h>

#include "test_server.h"

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

// Two lengths, or a length and chunks, are read differently by a proxy and a server: whoever is between them sees another request.
TEST(HostileHttp, AmbiguousFramingIsRefused) {
  TestServer server;
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\n";
  for (const std::string_view framing :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked, identity\r\nContent-Length: 3\r\n\r\n{}\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}\n", "Content-Length: +2\r\n\r\n{}", "Content-Length: 2 \r\n Content-Length: 9\r\n\r\n{}"}) {
    RawClient client = server.connect();
    client.send(head + std::string(framing) + get("/health"));
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, 400) << framing;
  }
}

}  // namespace
}  // namespace braid::test
