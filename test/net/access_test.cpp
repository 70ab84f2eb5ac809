// API keys: who is let in, what a key brings, and that it shows nowhere.
#include "net/access/administrator.h"
#include "net/access/key_ring.h"
#include "net/endpoints/endpoint.h"
#include "net/log/log_tail.h"
#include "net/test_server.h"
#include "support/folder.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <set>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {
namespace {

using net::access::ApiKey;
using net::access::Rules;

constexpr std::string_view kBody = R"({"prompt":[1,2]})";

ApiKey key(std::string name, std::string_view secret, Rules rules = {}) {
  return {std::move(name), net::access::digest_of(secret), std::move(rules)};
}

net::ServerOptions with_keys(std::vector<ApiKey> keys) {
  net::ServerOptions options = test_options();
  options.api_keys = std::move(keys);
  return options;
}

std::string bearer(std::string_view secret) { return "Authorization: Bearer " + std::string(secret) + "\r\n"; }

std::string request_for(const net::Endpoint& route) {
  const std::string path = "/v1" + std::string(route.path) + (route.argument ? "x" : "");
  const std::string_view method = route.method == net::http::Method::kPost   ? "POST"
                                  : route.method == net::http::Method::kGet  ? "GET"
                                  : route.method == net::http::Method::kHead ? "HEAD"
                                                                             : "DELETE";
  return std::string(method) + " " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
}

Reply ask(TestServer& server, const std::string& request) {
  RawClient client = server.connect();
  client.send(request);
  return client.read_reply(request.starts_with("HEAD"));
}

// Every route of the table, asked by everybody who may or may not.
TEST(Callers, EachRouteIsOpenToThoseOfItsRow) {
  Rules administrator;
  administrator.is_administrator = true;
  net::ServerOptions options = with_keys({key("client", "sk-client"), key("ops", "sk-ops", administrator)});
  options.reload = [] { return Result<net::Reloaded>(net::Reloaded{.api_keys = 2}); };
  TestServer server(options);
  for (const net::Endpoint& route : net::endpoints()) {
    const std::string request = request_for(route);
    const auto with = [&request](std::string_view secret) {
      return request.substr(0, request.find("Content-Length")) + bearer(secret) + request.substr(request.find("Content-Length"));
    };
    const bool is_open = route.caller == net::Caller::kAnybody;
    EXPECT_EQ(ask(server, request).status == 401, !is_open) << route.path;
    EXPECT_EQ(ask(server, with("sk-client")).status == 403, route.caller == net::Caller::kAdministrator) << route.path;
    const int status = ask(server, with("sk-ops")).status;
    EXPECT_TRUE(status != 401 && status != 403) << route.path << " " << status;
  }
}

TEST(Callers, AServerWithoutKeysLetsPagesOfThisMachineAloneChangeIt) {
  net::ServerOptions options = test_options();
  options.reload = [] { return Result<net::Reloaded>(net::Reloaded()); };
  TestServer server(options);
  const auto status = [&server](std::string_view host, std::string_view headers) {
    return server.ask(fmt::format("POST /reload HTTP/1.1\r\nHost: {}\r\n{}Content-Length: 0\r\n\r\n", host, headers)).status;
  };
  EXPECT_EQ(status("localhost:8000", ""), 200);
  EXPECT_EQ(status("127.0.0.1", "Origin: http://localhost:3000\r\n"), 200);
  EXPECT_EQ(status("127.0.0.1", "Origin: https://example.org\r\n"), 403);
  EXPECT_EQ(status("rebound.example.org", ""), 403);
}

TEST(Callers, AnAdministratorResetsThePrefixCache) {
  TestServer server;
  server.on_loop([&] { server.engine().cached_blocks = 12; });
  const auto ask = [&server](std::string_view host) {
    return server.ask(fmt::format("POST /reset_prefix_cache HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", host));
  };
  EXPECT_EQ(ask("rebound.example.org").status, 403);
  EXPECT_EQ(ask("localhost").body, R"({"object":"reset_prefix_cache","blocks":12})");
  EXPECT_EQ(ask("localhost").body, R"({"object":"reset_prefix_cache","blocks":0})");
  server.on_loop([&] { server.status() = {ServiceState::kNoModel, "", {}}; });
  EXPECT_EQ(ask("localhost").status, 503);
}

TEST(Callers, AnAdministratorHasTheUnixSocketInsteadOfAKey) {
  const test::Folder folder;
  const std::string path = folder / "administrator.sock";
  net::ServerOptions options = with_keys({key("client", "sk-client")});
  options.unix_socket = path;
  options.unix_token = net::kNoToken;
  options.reload = [] { return Result<net::Reloaded>(net::Reloaded{.api_keys = 1}); };
  TestServer server(options);
  const auto status = [&path](std::string_view bytes) {
    RawClient client(path);
    client.send(bytes);
    return client.read_reply().status;
  };
  EXPECT_EQ(status(post("/reload", "{}")), 200);
  EXPECT_EQ(status(get("/slots")), 401) << "which is a client's";
}

TEST(Callers, WhatCannotBeReadAgainIsToldAndAServerWithoutAnyHasNoSuchRoute) {
  net::ServerOptions options = test_options();
  EXPECT_EQ(TestServer(options).ask(post("/reload", "", "")).status, 403) << "the host is not of this machine";
  const std::string request = "POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(TestServer(options).ask(request).status, 404);
  options.reload = [] { return Result<net::Reloaded>(Error{ErrorCode::kIo, "keys:1: a mistake", ""}); };
  const Reply reply = TestServer(options).ask(request);
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("keys:1: a mistake"), std::string::npos);
}

TEST(Callers, AreToldWhichOptionsHaveChanged) {
  net::ServerOptions options = test_options();
  options.reload = [] { return Result<net::Reloaded>(net::Reloaded{2, {"drain-delay", "log-level"}, {"max-batch"}}); };
  TestServer server(options);
  const Reply reply = server.ask("POST /v1/admin/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(reply.body, R"({"object":"reload","api_keys":2,"changed":["drain-delay","log-level"],"waiting":["max-batch"]})");
}

TEST(Callers, WithoutKeysAreLimitedAnewFromNowOn) {
  const auto now = std::chrono::steady_clock::now();
  net::access::KeyRing ring({}, {}, now);
  const std::shared_ptr<net::access::Account> everybody = ring.identify({}).value();
  EXPECT_TRUE(net::access::Visit::begin(everybody, now));
  ring.limit_anonymous({.requests_per_minute = 1}, now);
  EXPECT_TRUE(net::access::Visit::begin(everybody, now));
  EXPECT_EQ(net::access::Visit::begin(everybody, now).error().code, ErrorCode::kRateLimited);
  ring.limit_anonymous({}, now);
  EXPECT_TRUE(net::access::Visit::begin(everybody, now));
}

TEST(LogTail, KeepsTheLastLinesWithTheirNumbers) {
  net::LogTail tail;
  EXPECT_EQ(tail.after(0, 10).first, 1U);
  EXPECT_TRUE(tail.after(0, 10).lines.empty());
  for (std::size_t i = 1; i <= net::LogTail::kMostLines + 5; ++i) tail.push(fmt::format("line {}\n", i));
  const net::LogTail::Excerpt all = tail.after(0, net::LogTail::kMostLines * 2);
  EXPECT_EQ(all.first, 6U);
  ASSERT_EQ(all.lines.size(), net::LogTail::kMostLines);
  EXPECT_EQ(all.lines.front(), "line 6");
  const net::LogTail::Excerpt last = tail.after(1003, 10);
  EXPECT_EQ(last.first, 1004U);
  EXPECT_EQ(last.lines, (std::vector<std::string>{"line 1004", "line 1005"}));
  EXPECT_EQ(tail.after(0, 1).lines, std::vector<std::string>{"line 1005"});
  EXPECT_EQ(tail.after(1005, 10).first, 1006U);
  EXPECT_TRUE(tail.after(9999, 10).lines.empty()) << "numbers of a server before this one";
  tail.push(std::string(net::LogTail::kMostBytes + 1, 'x'));
  EXPECT_EQ(tail.after(1005, 1).lines.front().size(), net::LogTail::kMostBytes);
}

TEST(LogTail, IsShownToAdministrators) {
  net::ServerOptions options = test_options();
  const auto tail = std::make_shared<net::LogTail>();
  tail->push("one \"quoted\" line\n");
  tail->push("a character cut in two: \xC3");
  options.log_tail = tail;
  TestServer server(options);
  const auto ask = [&server](std::string_view query) {
    return server.ask(fmt::format("GET /v1/admin/log{} HTTP/1.1\r\nHost: localhost\r\n\r\n", query));
  };
  EXPECT_EQ(ask("").body,
            "{\"object\":\"log\",\"first\":1,\"lines\":[\"one \\\"quoted\\\" line\",\"a character cut in two: \xEF\xBF\xBD\"]}");
  EXPECT_EQ(ask("?after=2").body, R"({"object":"log","first":3,"lines":[]})");
  EXPECT_EQ(ask("?limit=0").body, R"({"object":"log","first":3,"lines":[]})");
  EXPECT_EQ(ask("?after=-1").status, 400);
  EXPECT_EQ(ask("?limit=many").status, 400);
  EXPECT_EQ(server.ask(get("/v1/admin/log")).status, 403) << "the host is not of this machine";
}

TEST(ApiKeys, EveryRouteButTheProbesAndTheDescriptionWantsOne) {
  TestServer server(with_keys({key("a", "sk-right")}));
  for (const net::Endpoint& route : net::endpoints()) {
    constexpr std::string_view kOpen[] = {"/health",       "/livez", "/readyz",      "/ping", "/version",
                                          "/openapi.json", "/docs",  "/api/version", "/",     "/page/"};
    const bool open = std::find(std::begin(kOpen), std::end(kOpen), route.path) != std::end(kOpen);
    const Reply reply = ask(server, request_for(route));
    EXPECT_EQ(reply.status == 401, !open) << route.path << " " << reply.status;
    if (open) continue;
    EXPECT_EQ(reply.headers.at("www-authenticate"), R"(Bearer realm="braid")") << route.path;
  }
}

using net::http::Connection;

// Whether a request for an administrator's route gets through.
bool may_administrate(Connection::Place place, std::string host, std::string origin, const net::access::Account* account, bool has_keys) {
  net::http::Request request;
  request.host = std::move(host);
  request.origin = std::move(origin);
  const Result<void> allowed = net::access::check_administrator(account, has_keys, place, request);
  EXPECT_TRUE(allowed || allowed.error().code == ErrorCode::kForbidden);
  return allowed.has_value();
}

TEST(Administrator, IsAKeyWithThatSettingOrTheUnixSocketWhereThereAreKeys) {
  const auto now = std::chrono::steady_clock::now();
  Rules rules;
  const net::access::Account client("client", rules, now);
  rules.is_administrator = true;
  const net::access::Account administrator("administrator", rules, now);
  using enum Connection::Place;
  EXPECT_TRUE(may_administrate(kElsewhere, "example.org", "https://example.org", &administrator, true));
  EXPECT_FALSE(may_administrate(kLoopback, "localhost", "", &client, true));
  EXPECT_TRUE(may_administrate(kUnixSocket, "localhost", "", &client, true));
  EXPECT_TRUE(may_administrate(kUnixSocket, "localhost", "", nullptr, true));
}

TEST(Administrator, IsWhoeverSitsAtThisMachineWhereThereAreNoKeys) {
  const net::access::Account anonymous("", Rules(), std::chrono::steady_clock::now());
  const auto allowed = [&](Connection::Place place, std::string host, std::string origin) {
    return may_administrate(place, std::move(host), std::move(origin), &anonymous, false);
  };
  using enum Connection::Place;
  for (const char* host : {"localhost", "LOCALHOST:8000", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:8000"}) {
    EXPECT_TRUE(allowed(kLoopback, host, "")) << host;
    EXPECT_TRUE(allowed(kLoopback, host, "http://" + std::string(host))) << host;
    EXPECT_FALSE(allowed(kElsewhere, host, "")) << host;
  }
  for (const char* host : {"", "example.org", "localhost.example.org", "127.0.0.1.example.org", "10.0.0.1", "[::2]", "127.0.0", "::1"}) {
    EXPECT_FALSE(allowed(kLoopback, host, "")) << host << ": its name points here, as an attacker's may";
    EXPECT_FALSE(allowed(kLoopback, "localhost", "http://" + std::string(host))) << host << ": a page from elsewhere";
  }
  EXPECT_FALSE(allowed(kLoopback, "localhost", "null"));
}

TEST(ApiKeys, MetricsAreOpenIfTheOptionSaysSo) {
  net::ServerOptions options = with_keys({key("a", "sk-right")});
  options.open_metrics = true;
  TestServer server(options);
  EXPECT_EQ(server.ask(get("/metrics")).status, 200);
  EXPECT_EQ(server.ask(get("/slots")).status, 401);
}

TEST(ApiKeys, ARefusalHasTheFormOfItsDialect) {
  TestServer server(with_keys({key("a", "sk-right")}));
  EXPECT_EQ(server.ask(post("/v1/completions", kBody)).body,
            R"({"error":{"message":"this server wants an API key, as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'",)"
            R"("type":"invalid_request_error","param":null,"code":"invalid_api_key"}})");
  EXPECT_EQ(
      normalized(server.ask(post("/v1/messages", "{}", "x-api-key: sk-wrong\r\n")).body),
      R"({"type":"error","error":{"type":"authentication_error","message":"the API key is not one of this server's"},"request_id":"req-ID"})");
}

// SIGHUP renews a certificate, too.
TEST(ApiKeys, AServerWithoutAnyStaysOpenWhenTheyAreReadAgain) {
  TestServer server;
  server.on_loop([&] { server.server().replace_api_keys({}); });
  EXPECT_EQ(server.ask(post("/v1/completions", kBody)).status, 200);
}

TEST(ApiKeys, AServerWhoseKeysAreAllTakenAwayLetsNobodyIn) {
  TestServer server(with_keys({key("a", "sk-right")}));
  server.on_loop([&] { server.server().replace_api_keys({}); });
  EXPECT_EQ(server.ask(post("/v1/completions", kBody, bearer("sk-right"))).status, 401);
  EXPECT_EQ(server.ask(post("/v1/completions", kBody)).status, 401);
}

TEST(ApiKeys, OneOfTheKeysThatComeMustBeRight) {
  TestServer server(with_keys({key("a", "sk-first"), key("b", "sk-second")}));
  const auto status = [&](const std::string& headers) { return server.ask(get("/v1/models", headers)).status; };
  EXPECT_EQ(status(bearer("sk-first")), 200);
  EXPECT_EQ(status(bearer("sk-second")), 200);
  EXPECT_EQ(status("authorization: bEARER  sk-first\r\n"), 200);
  EXPECT_EQ(status("X-API-Key: sk-second\r\n"), 200);
  EXPECT_EQ(status(bearer("none") + "x-api-key: sk-second\r\n"), 200);
  for (const std::string_view wrong : {"sk-firs", "sk-first1", "SK-FIRST", "sk-firsu", "a", "sk-first sk-second"})
    EXPECT_EQ(status(bearer(wrong)), 401) << wrong;
  EXPECT_EQ(status("Authorization: sk-first\r\n"), 401);
  EXPECT_EQ(status("Authorization: Basic sk-first\r\n"), 401);
  EXPECT_EQ(status("Authorization: Bearer\r\nx-api-key:\r\n"), 401);
}

TEST(ApiKeys, WithoutAnyEverybodyIsLetInWhateverTheySend) {
  TestServer server;
  EXPECT_EQ(server.ask(post("/v1/completions", kBody, bearer("none"))).status, 200);
}

TEST(ApiKeys, ReplacedOnesCountAtOnceAndRunningRequestsGoOn) {
  TestServer server(with_keys({key("a", "sk-old")}));
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient running = server.connect();
  running.send(post("/v1/completions", kBody, bearer("sk-old")));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.server().replace_api_keys({key("b", "sk-new")}); });
  EXPECT_EQ(server.ask(get("/v1/models", bearer("sk-old"))).status, 401);
  EXPECT_EQ(server.ask(get("/v1/models", bearer("sk-new"))).status, 200);
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  EXPECT_EQ(running.read_reply().status, 200);
}

TEST(ApiKeys, NobodySendsABodyWithoutOne) {
  TestServer server(with_keys({key("a", "sk-right")}));
  const auto begin = [](const std::string& headers, const std::string& request = "POST /v1/completions") {
    return request + " HTTP/1.1\r\nHost: a\r\n" + headers + "Content-Length: 90000\r\n\r\n";
  };
  const std::string part(50'000, ' ');
  for (const auto& [sent, status] :
       {std::pair(begin("Expect: 100-continue\r\n"), 401), std::pair(begin(bearer("sk-wrong")) + part, 401),
        std::pair(begin("", "POST /v1/nothing") + part, 404), std::pair(begin("", "GET /health") + part, 200)}) {
    RawClient client = server.connect();
    client.send(sent);
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.headers.at("connection"), "close");
    client.send(std::string(10'000, ' '));  // it may have been on its way
    EXPECT_TRUE(client.closed());
  }
  RawClient client = server.connect();
  client.send(begin("Expect: 100-continue\r\n" + bearer("sk-right")));
  client.read_until("HTTP/1.1 100 Continue\r\n\r\n");
}

TEST(ApiKeys, WhatANameHasUsedStaysUsedWhenItsKeyIsReplaced) {
  Rules rules;
  rules.limits.requests_per_minute = 2;
  TestServer server(with_keys({key("a", "sk-old", rules)}));
  EXPECT_EQ(server.ask(post("/v1/completions", kBody, bearer("sk-old"))).status, 200);
  server.on_loop([&] { server.server().replace_api_keys({key("a", "sk-new", rules)}); });
  EXPECT_EQ(server.ask(post("/v1/completions", kBody, bearer("sk-new"))).status, 200);
  EXPECT_EQ(server.ask(post("/v1/completions", kBody, bearer("sk-new"))).status, 429);
}

TEST(ApiKeys, WhatANameHasUsedStaysUsedWhileItHasNoKey) {
  Rules rules;
  rules.limits.requests_per_minute = 2;
  rules.limits.concurrent_requests = 1;
  const ApiKey other = key("b", "sk-other");
  TestServer server(with_keys({key("a", "sk-mine", rules), other}));
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient running = server.connect();
  running.send(post("/v1/completions", kBody, bearer("sk-mine")));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.server().replace_api_keys({other}); });
  server.on_loop([&] { server.server().replace_api_keys({key("a", "sk-mine", rules), other}); });
  const Reply beside = server.ask(post("/v1/completions", kBody, bearer("sk-mine")));
  EXPECT_EQ(beside.status, 429);
  EXPECT_EQ(beside.headers.at("x-ratelimit-remaining-requests"), "1");
  server.on_loop([&] { server.engine().push(0, Finish{}); });
  EXPECT_EQ(running.read_reply().status, 200);
}

// What was done with the key `mine` is there for it, and for `other` it is as if it had never been.
class OwnWork : public testing::Test {
 protected:
  Reply ask(std::string_view secret, std::string_view method, const std::string& path, std::string_view body = "") {
    return server.ask(
        fmt::format("{} {} HTTP/1.1\r\nHost: a\r\n{}Content-Length: {}\r\n\r\n{}", method, path, bearer(secret), body.size(), body));
  }
  Reply respond(std::string_view secret, const std::string& members) {
    return ask(secret, "POST", "/v1/responses", R"({"input":"a")" + members + "}");
  }

  TestServer server{with_keys({key("a", "mine"), key("b", "other")})};
};

TEST_F(OwnWork, StoredResponsesAreReadDeletedAndContinuedByTheirClientAlone) {
  const std::string body = respond("mine", "").body;
  const std::size_t begin = body.find("\"id\":\"") + 6;
  const std::string id = body.substr(begin, body.find('"', begin) - begin);
  const std::string path = "/v1/responses/" + id;
  const std::string previous = R"(,"previous_response_id":")" + id + '"';
  EXPECT_EQ(ask("other", "GET", path).status, 404);
  EXPECT_EQ(ask("other", "GET", path + "/input_items").status, 404);
  EXPECT_EQ(ask("other", "DELETE", path).status, 404);
  EXPECT_EQ(respond("other", previous).status, 400);
  EXPECT_EQ(ask("mine", "GET", path).body, body);
  EXPECT_EQ(ask("mine", "GET", path + "/input_items").status, 200);
  EXPECT_EQ(respond("mine", previous).status, 200);
  server.on_loop([&] { server.server().replace_api_keys({key("a", "mine-2"), key("b", "other")}); });
  EXPECT_EQ(ask("mine-2", "DELETE", path).status, 200);
  EXPECT_EQ(ask("mine-2", "GET", path).status, 404);
}

TEST_F(OwnWork, SlotsShowAndAbortsEndTheClientsOwnSequences) {
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient running = server.connect();
  running.send(post("/v1/completions", R"({"prompt":[1,2],"n":2})", bearer("mine")));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 2; }));
  std::string id;
  server.on_loop([&] { id = server.engine().submitted[0].id; });
  id = id.substr(0, id.find('/'));
  EXPECT_EQ(ask("other", "GET", "/slots").body, "[]");
  const std::string own = ask("mine", "GET", "/slots").body;
  EXPECT_NE(own.find(id + "/0"), std::string::npos) << own;
  EXPECT_NE(own.find(R"({"id":1,)"), std::string::npos) << own;
  const std::string wish = R"({"id":")" + id + "\"}";
  const Reply refused = ask("other", "POST", "/v1/abort", wish);
  EXPECT_EQ(refused.status, 404);
  EXPECT_NE(refused.body.find("no answer with the id"), std::string::npos) << refused.body;
  server.on_loop([&] { EXPECT_EQ(server.engine().live.size(), 2U); });
  EXPECT_EQ(ask("mine", "POST", "/v1/abort", wish).status, 200);
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
}

TEST(ApiKeys, AreInNoLogNoMetricAndNoAnswer) {
  std::ostringstream log;
  const auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
  net::ServerOptions options = with_keys({key("alice", "sk-right-secret")});
  options.log = {logger, net::LogFormat::kJson, true};
  TestServer server(options);
  std::string seen;
  for (const std::string_view secret : {"sk-right-secret", "sk-wrong-secret"})
    for (const std::string& header : {bearer(secret), "x-api-key: " + std::string(secret) + "\r\n"})
      for (const std::string& request : {get("/v1/models", header), get("/v1/none", header), post("/v1/completions", "{", header),
                                         post("/v1/messages", kBody, header), get("/metrics", header), get("/slots", header)}) {
        const Reply reply = server.ask(request);
        seen += reply.body;
        for (const auto& [name, value] : reply.headers) seen += value;
      }
  server.on_loop([&] { seen += log.str(); });
  EXPECT_NE(seen.find(R"("key":"alice")"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("-secret"), std::string::npos) << seen;
}

TEST(ApiKeys, BringAPriorityAndTheBestOneThatMayBeAskedFor) {
  Rules rules;
  rules.priority = 20;
  rules.best_priority = 10;
  TestServer server(with_keys({key("a", "sk", rules)}));
  const auto ask = [&](const char* body) { return server.ask(post("/v1/completions", body, bearer("sk"))); };
  EXPECT_EQ(ask(R"({"prompt":[1]})").status, 200);
  EXPECT_EQ(ask(R"({"prompt":[1],"priority":10})").status, 200);
  EXPECT_EQ(ask(R"({"prompt":[1],"service_tier":"default"})").status, 200);
  const Reply refused = ask(R"({"prompt":[1],"priority":0})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("a priority of 10 at best, not 0"), std::string::npos) << refused.body;
  EXPECT_EQ(ask(R"({"prompt":[1],"service_tier":"priority"})").status, 400);
  server.on_loop([&] {
    ASSERT_EQ(server.engine().submitted.size(), 3U);
    EXPECT_EQ(server.engine().submitted[0].priority, 20);
    EXPECT_EQ(server.engine().submitted[1].priority, 10);
    EXPECT_EQ(server.engine().submitted[2].priority, 20);
  });
}

TEST(ApiKeys, OfDifferentSaltsShareNoCachedPrefix) {
  Rules salted;
  salted.cache_salt = "red";
  TestServer server(with_keys({key("a", "sk-a", salted), key("b", "sk-b")}));
  const auto ask = [&](const char* secret, const char* body) { return server.ask(post("/v1/completions", body, bearer(secret))).status; };
  EXPECT_EQ(ask("sk-a", R"({"prompt":[1]})"), 200);
  EXPECT_EQ(ask("sk-a", R"({"prompt":[1],"cache_salt":"mine"})"), 200);
  EXPECT_EQ(ask("sk-b", R"({"prompt":[1],"cache_salt":"red"})"), 200);
  EXPECT_EQ(ask("sk-b", R"({"prompt":[1]})"), 200);
  EXPECT_EQ(ask("sk-b", R"({"prompt":[1],"cache_salt":"\u0001red\u0001"})"), 400);
  server.on_loop([&] {
    std::set<std::string> salts;
    for (const GenerationRequest& request : server.engine().submitted) salts.insert(request.cache_salt);
    EXPECT_EQ(salts.size(), 4U);
  });
}

}  // namespace
}  // namespace braid::test
