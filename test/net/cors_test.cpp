// Which web pages may read answers, and OPTIONS and HEAD of every route.
#include "net/endpoints/endpoint.h"
#include "net/test_server.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

constexpr std::string_view kPage = "Origin: https://page.example\r\n";

net::ServerOptions allowing(std::vector<std::string> origins) {
  net::ServerOptions options = test_options();
  options.cors_origins = std::move(origins);
  return options;
}

std::string preflight(std::string_view path, std::string_view origin = kPage) {
  return "OPTIONS " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(origin) +
         "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n\r\n";
}

TEST(Cors, NoPageMayReadAnythingByDefault) {
  TestServer server;
  for (const std::string& request : {get("/v1/models", kPage), preflight("/v1/completions")})
    for (const auto& [name, value] : server.ask(request).headers) {
      EXPECT_FALSE(name.starts_with("access-control")) << name;
      EXPECT_NE(name, "vary");
    }
}

TEST(Cors, AnAllowedPageMayReadAnswersErrorsAndStreams) {
  TestServer server(allowing({"https://other.example", "https://page.example"}));
  for (const std::string& request :
       {get("/v1/models", kPage), get("/v1/none", kPage), post("/v1/completions", "{", kPage),
        post("/v1/completions", R"({"prompt":"a"})", kPage), post("/v1/completions", R"({"prompt":"a","stream":true})", kPage),
        post("/tokenize", R"({"content":"a"})", kPage)}) {
    const Reply reply = server.ask(request);
    EXPECT_EQ(reply.headers.at("access-control-allow-origin"), "https://page.example") << request;
    for (const char* name : {"X-Request-Id", "X-Braid-Tools-Ignored", "X-Braid-Schema-Ignored"})
      EXPECT_NE(reply.headers.at("access-control-expose-headers").find(name), std::string::npos) << name;
    EXPECT_EQ(reply.headers.at("vary"), "Origin");
    EXPECT_FALSE(reply.headers.contains("access-control-allow-credentials"));
  }
}

TEST(Cors, APreflightNamesMethodsAndHeaders) {
  TestServer server(allowing({"https://page.example"}));
  const Reply reply = server.ask(preflight("/v1/completions"));
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.headers.at("access-control-allow-origin"), "https://page.example");
  EXPECT_EQ(reply.headers.at("access-control-allow-methods"), "POST, OPTIONS");
  EXPECT_EQ(reply.headers.at("access-control-allow-headers"), "authorization,content-type");
  EXPECT_TRUE(reply.headers.contains("access-control-max-age"));
}

TEST(Cors, APrivateNetworkIsAnsweredForAllowedPagesOnly) {
  TestServer server(allowing({"https://page.example"}));
  const std::string asks = "Access-Control-Request-Private-Network: true\r\n";
  EXPECT_EQ(server.ask(preflight("/v1/completions", std::string(kPage) + asks)).headers.at("access-control-allow-private-network"), "true");
  EXPECT_FALSE(server.ask(preflight("/v1/completions")).headers.contains("access-control-allow-private-network"));
  const Reply other = server.ask(preflight("/v1/completions", "Origin: https://other.example\r\n" + asks));
  EXPECT_FALSE(other.headers.contains("access-control-allow-private-network"));
}

TEST(Cors, LocalhostMeansAnyPortOfThisMachine) {
  TestServer server(allowing({"localhost"}));
  for (const std::string origin :
       {"http://localhost", "http://localhost:3000", "https://localhost:8443", "http://127.0.0.1:5173", "http://[::1]:80"})
    EXPECT_EQ(server.ask(preflight("/v1/completions", "Origin: " + origin + "\r\n")).headers.at("access-control-allow-origin"), origin);
  for (const std::string origin : {"http://localhost.example", "http://example:80", "null", "localhost", "http://128.0.0.1"})
    EXPECT_FALSE(server.ask(preflight("/v1/models", "Origin: " + origin + "\r\n")).headers.contains("access-control-allow-origin"))
        << origin;
}

TEST(Cors, APreflightNeedsNoKey) {
  net::ServerOptions options = allowing({"https://page.example"});
  options.api_keys = {{"a", net::access::digest_of("sk"), {}}};
  TestServer server(options);
  EXPECT_EQ(server.ask(preflight("/v1/completions")).status, 204);
  const Reply refused = server.ask(get("/v1/models", kPage));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.at("access-control-allow-origin"), "https://page.example");
}

TEST(Cors, OtherPagesAreToldNothing) {
  TestServer server(allowing({"https://page.example"}));
  for (const std::string_view origin : {"Origin: https://page.example.evil\r\n", "Origin: http://page.example\r\n", "Origin: null\r\n",
                                        "Origin: https://page.example:8443\r\n", "Origin: *\r\n", ""}) {
    for (const std::string& request : {get("/v1/models", origin), preflight("/v1/completions", origin)}) {
      const Reply reply = server.ask(request);
      EXPECT_EQ(reply.headers.at("vary"), "Origin");
      EXPECT_FALSE(reply.headers.contains("access-control-allow-origin")) << origin;
      EXPECT_FALSE(reply.headers.contains("access-control-allow-methods")) << origin;
    }
  }
}

TEST(Cors, AStarAllowsEveryPageWithoutCredentials) {
  TestServer server(allowing({"*"}));
  const Reply reply = server.ask(preflight("/v1/completions"));
  EXPECT_EQ(reply.headers.at("access-control-allow-origin"), "*");
  EXPECT_FALSE(reply.headers.contains("access-control-allow-credentials"));
  EXPECT_FALSE(reply.headers.contains("vary"));
}

std::string path_of(const net::Endpoint& route) { return "/v1" + std::string(route.path) + (route.argument ? "fake-model" : ""); }

TEST(Options, EveryRouteNamesItsMethods) {
  TestServer server;
  for (const net::Endpoint& route : net::endpoints()) {
    const Reply reply = server.ask("OPTIONS " + path_of(route) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(reply.status, 204) << route.path;
    const std::string_view method = route.method == net::http::Method::kPost   ? "POST"
                                    : route.method == net::http::Method::kGet  ? "GET, HEAD"
                                    : route.method == net::http::Method::kHead ? "HEAD"
                                                                               : "DELETE";
    EXPECT_NE(reply.headers.at("allow").find(method), std::string::npos) << route.path;
    EXPECT_FALSE(reply.headers.contains("content-length")) << route.path;
  }
}

TEST(Head, EveryRouteAnswersItAsGetWithoutTheBody) {
  TestServer server;
  for (const net::Endpoint& route : net::endpoints()) {
    if (route.path == "/api/blobs/") continue;  // where it means something of its own, and GET nothing
    RawClient client = server.connect();
    client.send("HEAD " + path_of(route) + " HTTP/1.1\r\nHost: a\r\n\r\n" + get("/health"));
    const Reply head = client.read_reply(true);
    const Reply same = server.ask(get(path_of(route)));
    EXPECT_EQ(head.status, same.status) << route.path;
    EXPECT_EQ(head.headers.at("content-type"), same.headers.at("content-type")) << route.path;
    EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})") << route.path;
    if (route.path.ends_with("/metrics")) continue;  // figures change
    EXPECT_EQ(head.headers.at("content-length"), same.headers.at("content-length")) << route.path;
  }
}

}  // namespace
}  // namespace braid::test
