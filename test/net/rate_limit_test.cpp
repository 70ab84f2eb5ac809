// How much a client may ask for, and how it is told that it was too much.
#include "net/access/account.h"
#include "net/access/token_bucket.h"
#include "net/test_server.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

using namespace std::chrono_literals;
using net::access::Account;
using net::access::Clock;
using net::access::TokenBucket;
using net::access::Visit;

constexpr Clock::time_point kStart{1h};

TEST(TokenBucket, HoldsAMinutesWorthAndFillsEvenly) {
  TokenBucket bucket(60, kStart);
  EXPECT_EQ(bucket.wait_for(60, kStart), 0ms);
  bucket.take(60);
  EXPECT_EQ(bucket.wait_for(1, kStart), 1s);
  EXPECT_EQ(bucket.wait_for(30, kStart + 10s), 20s);
  EXPECT_EQ(bucket.remaining(kStart + 15s), 15U);
  EXPECT_EQ(bucket.remaining(kStart + 2h), 60U);
}

TEST(TokenBucket, MayOweWhichTakesItsTime) {
  TokenBucket bucket(60, kStart);
  bucket.take(90);
  EXPECT_EQ(bucket.remaining(kStart), 0U);
  EXPECT_EQ(bucket.wait_for(1, kStart), 31s);
  EXPECT_EQ(bucket.until_full(kStart), 90s);
}

TEST(TokenBucket, WithoutALimitNeverWaits) {
  TokenBucket bucket(0, kStart);
  bucket.take(1e9);
  EXPECT_EQ(bucket.wait_for(1e9, kStart), 0ms);
  bucket.set_limit(60, kStart + 1s);
  EXPECT_EQ(bucket.remaining(kStart + 1s), 60U);  // what was taken while there was no limit is not owed
}

TEST(TokenBucket, ASmallerLimitLeavesNoMoreThanAMinutesWorth) {
  TokenBucket bucket(600, kStart);
  bucket.set_limit(60, kStart);
  EXPECT_EQ(bucket.remaining(kStart), 60U);
  bucket.set_limit(600, kStart);
  EXPECT_EQ(bucket.remaining(kStart + 1s), 70U);
}

TEST(Visit, CountsAmongTheRunningOnesWhileItLives) {
  net::access::Rules rules;
  rules.limits.concurrent_requests = 1;
  const auto account = std::make_shared<Account>("a", rules, kStart);
  {
    const Result<Visit> first = Visit::begin(account, kStart);
    ASSERT_TRUE(first);
    const Result<Visit> second = Visit::begin(account, kStart);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kRateLimited);
  }
  EXPECT_EQ(account->running(), 0U);
  EXPECT_TRUE(Visit::begin(account, kStart));
}

TEST(Visit, ARefusalForConcurrencyTakesNoRequest) {
  net::access::Rules rules;
  rules.limits = {2, 0, 1};
  const auto account = std::make_shared<Account>("a", rules, kStart);
  {
    const Result<Visit> first = Visit::begin(account, kStart);
    EXPECT_FALSE(Visit::begin(account, kStart));
    EXPECT_FALSE(Visit::begin(account, kStart));
  }
  EXPECT_TRUE(Visit::begin(account, kStart));
  const Result<Visit> third = Visit::begin(account, kStart);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().retry_after, 30s);
}

net::ServerOptions limited(net::access::Limits limits) {
  net::ServerOptions options = test_options();
  options.anonymous.limits = limits;
  return options;
}

Reply complete(TestServer& server, std::string_view body) { return server.ask(post("/v1/completions", body)); }

TEST(RateLimit, RequestsBeyondItAreToldWhenToComeAgain) {
  TestServer server(limited({2, 0, 0}));
  const Reply first = complete(server, R"({"prompt":[1]})");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.headers.at("x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(first.headers.at("x-ratelimit-remaining-requests"), "1");
  EXPECT_TRUE(first.headers.contains("x-ratelimit-reset-requests"));
  EXPECT_FALSE(first.headers.contains("x-ratelimit-limit-tokens"));
  EXPECT_EQ(complete(server, R"({"prompt":[1],"stream":true})").headers.at("x-ratelimit-remaining-requests"), "0");
  const Reply third = complete(server, R"({"prompt":[1],"stream":true})");
  EXPECT_EQ(third.status, 429);
  EXPECT_NE(third.body.find(R"("code":"rate_limit_exceeded")"), std::string::npos) << third.body;
  EXPECT_GE(std::stoi(third.headers.at("retry-after")), 1);
  EXPECT_LE(std::stoi(third.headers.at("retry-after")), 30);
  EXPECT_EQ(third.headers.at("x-ratelimit-remaining-requests"), "0");
  const Reply anthropic = server.ask(post("/v1/messages", "{}"));
  EXPECT_EQ(anthropic.status, 429);
  EXPECT_NE(anthropic.body.find(R"("type":"rate_limit_error")"), std::string::npos) << anthropic.body;
  EXPECT_TRUE(anthropic.headers.contains("retry-after"));
  EXPECT_EQ(server.ask(post("/tokenize", R"({"content":"a"})")).status, 429);
  EXPECT_EQ(server.ask(get("/v1/models")).status, 200);
}

TEST(RateLimit, TokensOfPromptAndAnswerAreCounted) {
  TestServer server(limited({0, 10, 0}));
  EXPECT_EQ(complete(server, R"({"prompt":[1,2,3,4]})").headers.at("x-ratelimit-remaining-tokens"), "4");  // "Hi" is two
  const Reply refused = complete(server, R"({"prompt":[1,2,3,4,5,6,7,8]})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("too few are left for a prompt of 8"), std::string::npos) << refused.body;
  EXPECT_EQ(complete(server, R"({"prompt":[1,2]})").status, 200);
}

TEST(RateLimit, AnAnswerMayGoOnWhenItsClientHasUsedUpItsTokens) {
  TestServer server(limited({0, 4, 0}));
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("a long answer"); }; });
  EXPECT_NE(complete(server, R"({"prompt":[1]})").body.find("a long answer"), std::string::npos);
  const Reply next = complete(server, R"({"prompt":[1]})");
  EXPECT_EQ(next.status, 429);
  EXPECT_GT(std::stoi(next.headers.at("retry-after")), 60);  // it owes ten
}

TEST(RateLimit, APromptThatCanNeverBeAdmittedIsWrong) {
  TestServer server(limited({0, 4, 0}));
  const Reply reply = complete(server, R"({"prompt":[1,2,3,4,5]})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_FALSE(reply.headers.contains("retry-after"));
}

TEST(RateLimit, WhatTheEngineRefusesCostsNoTokens) {
  TestServer server(limited({0, 5, 0}));
  server.on_loop([&] { server.engine().refusal = Error{ErrorCode::kOverloaded, "the queue is full", ""}; });
  EXPECT_EQ(complete(server, R"({"prompt":[1,2,3,4,5]})").status, 429);
  server.on_loop([&] { server.engine().refusal.reset(); });
  EXPECT_EQ(complete(server, R"({"prompt":[1,2,3,4,5]})").status, 200);
}

TEST(RateLimit, ConcurrentRequestsAreLimitedUntilTheyEnd) {
  TestServer server(limited({0, 0, 1}));
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient first = server.connect();
  first.send(post("/v1/completions", R"({"prompt":[1],"stream":true})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  EXPECT_EQ(complete(server, R"({"prompt":[1]})").status, 429);
  first.reset();
  ASSERT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("a"); }; });
  EXPECT_EQ(complete(server, R"({"prompt":[1]})").status, 200);
}

TEST(Overload, IsToldWithTimeAndPlaceBeforeAnyHeaderOfAStream) {
  TestServer server;
  Error full{ErrorCode::kOverloaded, "the queue is full", ""};
  full.retry_after = 7s;
  full.queue_position = 42;
  server.on_loop([&] { server.engine().refusal = full; });
  for (const std::string& request :
       {post("/v1/completions", R"({"prompt":"a","stream":true})"),
        post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"),
        post("/v1/messages", R"({"max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a"}]})")}) {
    const Reply reply = server.ask(request);
    EXPECT_EQ(reply.status, 429);
    EXPECT_EQ(reply.headers.at("retry-after"), "7");
    EXPECT_EQ(reply.headers.at("x-queue-position"), "42");
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  }
}

TEST(Overload, NoChoiceIsQueuedWhereNotAllHaveRoom) {
  TestServer server;
  server.on_loop([&] { server.engine().room = 5; });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":["a","b"],"n":3})")).status, 429);
  server.on_loop([&] { EXPECT_TRUE(server.engine().submitted.empty()); });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":["a"],"n":5})")).status, 200);
}

TEST(Overload, AStreamThatWaitsInTheQueueHasItsHeadersAndPings) {
  net::ServerOptions options = test_options();
  options.ping_interval = 20ms;
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})", "", "1.0"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
  EXPECT_EQ(client.read_until("\n\n"), ": ping\n\n");
  EXPECT_EQ(client.read_until("\n\n"), ": ping\n\n");
}

}  // namespace
}  // namespace braid::test
