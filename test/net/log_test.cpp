// What is written down about requests, and their ids.
#include "braid/printable.h"
#include "net/json/parse.h"
#include "net/log/line.h"
#include "net/log/trace.h"
#include "net/test_server.h"

#include <gtest/gtest.h>
#include <mutex>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sstream>
#include <string>
#include <vector>

namespace braid::test {
namespace {

using namespace std::chrono_literals;
using net::LogFormat;
using net::LogLine;
using net::TrustedProxies;

constexpr std::string_view kHostile = "a\nb\"c\\d=e \x1b[31m\x7f\xC2\x9B\xff \xC3\xA4";

TEST(LogLine, IsOneLineWhateverItsValuesHold) {
  LogLine line(LogFormat::kText, "re\nquest");
  line.add("plain", "x-1").add("hostile", kHostile).add("empty", "").add("count", std::int64_t{7}).add("ms", 1.5);
  EXPECT_EQ(line.text(),
            "re\\x0aquest plain=x-1 hostile=\"a\\x0ab\\\"c\\\\d=e \\x1b[31m\\x7f\\x9b\xff \xC3\xA4\" empty=\"\" count=7 ms=1.500");
}

TEST(LogLine, SteersNoEightBitTerminal) {
  LogLine line(LogFormat::kText, "request");
  line.add("bare", "a\x9b\x33m\x90").add("cut", "\xE2\x82 \x9b\xF8\x9b").add("whole", "\xE2\x82\x9B\xF0\x90\x80\x80\x9b");
  EXPECT_EQ(line.text(), "request bare=\"a\\x9b\x33m\\x90\" cut=\"\xE2\x82 \\x9b\xF8\\x9b\" whole=\"\xE2\x82\x9B\xF0\x90\x80\x80\\x9b\"");
}

TEST(Printable, KeepsTheControlsThatItIsTold) { EXPECT_EQ(printable("a\n\tb\r\x1b[2J\xC2\x9B", "\n\t"), "a\n\tb\\x0d\\x1b[2J\\x9b"); }

TEST(LogLine, IsAnObjectWhateverItsValuesHold) {
  LogLine line(LogFormat::kJson, "request");
  line.add("hostile", kHostile).add("count", std::int64_t{7});
  std::string document = "{" + line.text() + "}";
  EXPECT_EQ(document.find('\n'), std::string::npos);
  const Result<Value> read = net::json::parse(document);
  ASSERT_TRUE(read) << line.text();
  EXPECT_EQ(*read->find("message")->get_if<std::string>(), "request");
  EXPECT_EQ(*read->find("hostile")->get_if<std::string>(), "a\nb\"c\\d=e \x1b[31m\x7f\xC2\x9B\xEF\xBF\xBD \xC3\xA4");
  EXPECT_EQ(*read->find("count")->get_if<std::int64_t>(), 7);
}

TEST(TraceParent, IsReadWhereItCanBeGoneOnFrom) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string span = "00f067aa0ba902b7";
  const auto sampled = net::parse_traceparent("00-" + trace + "-" + span + "-01");
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->trace_id, trace);
  EXPECT_EQ(sampled->span_id, span);
  EXPECT_TRUE(sampled->is_sampled);
  EXPECT_FALSE(net::parse_traceparent("00-" + trace + "-" + span + "-02")->is_sampled);
  EXPECT_TRUE(net::parse_traceparent("00-" + trace + "-" + span + "-0b")->is_sampled);
  EXPECT_TRUE(net::parse_traceparent("cc-" + trace + "-" + span + "-01-what-comes-later")) << "of a later version";
  const std::string no_trace(32, '0');
  const std::string no_span(16, '0');
  for (const std::string& text :
       {std::string(), "00-" + trace, "ff-" + trace + "-" + span + "-01", "00-" + no_trace + "-" + span + "-01",
        "00-" + trace + "-" + no_span + "-01", "00-" + trace + "-" + span + "-01-more", "cc-" + trace + "-" + span + "-01more",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01", "00-" + trace + "_" + span + "-01", "00-" + trace + "-" + span + "-0g",
        "0x-" + trace + "-" + span + "-01"})
    EXPECT_FALSE(net::parse_traceparent(text)) << text;
}

// Keeps what it is given.
class KeptTraces final : public net::TraceSink {
 public:
  void take(net::RequestTrace&& trace) noexcept override {
    const std::lock_guard lock(mutex_);
    traces_.push_back(std::move(trace));
  }
  std::vector<net::RequestTrace> all() {
    const std::lock_guard lock(mutex_);
    return traces_;
  }

 private:
  std::mutex mutex_;
  std::vector<net::RequestTrace> traces_;
};

TEST(Traces, AreThoseOfGenerationsWithTheirPhases) {
  net::ServerOptions options = test_options();
  const auto kept = std::make_shared<KeptTraces>();
  options.log.traces = kept;
  options.metrics = false;
  TestServer server(options);
  server.ask(get("/health"));
  server.ask(post("/v1/completions", R"({"prompt":[1,2,3]})",
                  "X-Request-Id: my-id\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"));
  server.ask(post("/v1/chat/completions", R"({"messages":7})"));
  server.eventually([&] { return kept->all().size() == 2; });
  const std::vector<net::RequestTrace> traces = kept->all();
  const net::RequestTrace& whole = traces.at(0);
  EXPECT_EQ(whole.parent->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(whole.request_id, "my-id");
  EXPECT_EQ(whole.method, "POST");
  EXPECT_EQ(whole.route, "/completions");
  EXPECT_EQ(whole.ending, "done");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.model, "fake-model");
  EXPECT_EQ(whole.usage.completion_tokens, 2);
  ASSERT_TRUE(whole.submitted);
  EXPECT_LE(whole.work, *whole.submitted);
  EXPECT_LE(*whole.submitted, whole.end);
  EXPECT_GT(whole.usage.generation_ms, 0.0) << "each token is timed, though no metrics want that";
  EXPECT_FALSE(traces.at(1).parent);
  EXPECT_EQ(traces.at(1).status, 400);
  EXPECT_FALSE(traces.at(1).submitted);
}

class RequestLog : public testing::Test {
 protected:
  net::ServerOptions options(LogFormat format = LogFormat::kText) {
    net::ServerOptions options = test_options();
    sink->set_pattern("%l %v");
    options.log = {std::make_shared<spdlog::logger>("test", sink), format, true};
    return options;
  }

  // The lines with `word`, once there are `count` of them.
  std::vector<std::string> lines(TestServer& server, const std::string& word, std::size_t count = 1) {
    std::vector<std::string> found;
    server.eventually([&] {
      found.clear();
      std::istringstream text(log.str());
      for (std::string line; std::getline(text, line);)
        if (line.find(word) != std::string::npos) found.push_back(line);
      return found.size() >= count;
    });
    return found;
  }

  // The one line about an abort.
  std::string abort_line(TestServer& server) {
    EXPECT_EQ(lines(server, "info request request=").size(), 1U);  // written after it
    const std::vector<std::string> found = lines(server, "request aborted");
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? "" : found.front();
  }

  std::ostringstream log;
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log);
};

TEST_F(RequestLog, HasALineForEveryRequestWithWhatItTook) {
  TestServer server(options(LogFormat::kJson));
  server.ask(post("/v1/completions?key=hidden", R"({"prompt":[1,2,3]})", "X-Request-Id: my-id\r\n"));
  std::string line = lines(server, "my-id").at(0).substr(5);
  std::string document = "{" + line + "}";
  const Result<Value> read = net::json::parse(document);
  ASSERT_TRUE(read) << line;
  const auto text = [&](const char* name) { return *read->find(name)->get_if<std::string>(); };
  const auto number = [&](const char* name) { return *read->find(name)->get_if<std::int64_t>(); };
  EXPECT_EQ(text("message"), "request");
  EXPECT_EQ(text("request"), "my-id");
  EXPECT_TRUE(text("peer").starts_with("127.0.0.1:"));
  EXPECT_EQ(text("key"), "");
  EXPECT_EQ(text("method"), "POST");
  EXPECT_EQ(text("route"), "/completions");
  EXPECT_EQ(number("status"), 200);
  EXPECT_EQ(text("reason"), "done");
  EXPECT_EQ(text("model"), "fake-model");
  EXPECT_EQ(number("prompt_tokens"), 3);
  EXPECT_EQ(number("cached_tokens"), 0);
  EXPECT_EQ(number("generated_tokens"), 2);
  EXPECT_GT(number("bytes"), 100);
  for (const char* name : {"queue_ms", "first_token_ms", "total_ms"}) EXPECT_NE(read->find(name)->get_if<double>(), nullptr) << name;
  EXPECT_EQ(line.find("hidden"), std::string::npos);
}

TEST_F(RequestLog, NamesTheClientThatATrustedProxyNames) {
  net::ServerOptions behind = options();
  behind.log.proxies = TrustedProxies::parse({"127.0.0.0/8"}).value();
  TestServer server(behind);
  server.ask(get("/health", "X-Forwarded-For: 203.0.113.7, 198.51.100.4\r\nX-Forwarded-For: 127.0.0.9\r\n"));
  EXPECT_EQ(lines(server, "client=198.51.100.4 ").size(), 1U) << log.str();
  server.ask(get("/health"));
  EXPECT_EQ(lines(server, "client=127.0.0.1 ").size(), 1U) << log.str();
}

TEST_F(RequestLog, WithoutTrustedProxiesTellsOfThePeerAlone) {
  TestServer server(options());
  server.ask(get("/health", "X-Forwarded-For: 203.0.113.7\r\n"));
  EXPECT_EQ(lines(server, "peer=127.0.0.1:").size(), 1U);
  EXPECT_EQ(lines(server, "203.0.113.7", 0).size(), 0U);
}

TEST(TrustedProxies, TheLastAddressThatIsNoneOfTheirsIsTheClients) {
  const TrustedProxies proxies = TrustedProxies::parse({"10.0.0.0/8", "2001:db8::/33", "192.0.2.1", "unix"}).value();
  const auto client = [&](std::string_view peer, std::string_view forwarded) { return proxies.client(peer, forwarded); };
  EXPECT_EQ(client("10.1.2.3:80", "203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(client("10.1.2.3:80", "6.6.6.6, 203.0.113.7 ,\t192.0.2.1, 10.9.9.9"), "203.0.113.7") << "who is before it may be made up";
  EXPECT_EQ(client("10.1.2.3:80", "10.0.0.1, 10.0.0.2"), "10.0.0.1") << "all are theirs";
  EXPECT_EQ(client("[2001:db8:7fff::1]:80", "[2001:db8:8000::1]:443"), "2001:db8:8000::1");
  EXPECT_EQ(client("[::ffff:10.1.2.3]:80", "203.0.113.7:5000"), "203.0.113.7");
  EXPECT_EQ(client("unix", "203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(client("192.0.2.2:80", "203.0.113.7"), "192.0.2.2") << "nobody believes it";
  EXPECT_EQ(client("11.0.0.1:80", "203.0.113.7"), "11.0.0.1");
  EXPECT_EQ(TrustedProxies().client("unix", "203.0.113.7"), "unix");
}

TEST(TrustedProxies, WhatIsNoAddressEndsWhatIsBelieved) {
  const TrustedProxies proxies = TrustedProxies::parse({"10.0.0.0/8"}).value();
  for (const std::string& forwarded :
       {std::string(), std::string(","), std::string("unknown"), std::string("6.6.6.6, _hidden"), std::string("6.6.6.6,"),
        std::string("1.2.3.4.5"), std::string("["), std::string("[]"), std::string("6.6.6.6, a\x1b[2J"), std::string(60'000, ',')})
    EXPECT_EQ(proxies.client("10.0.0.1:80", forwarded), "10.0.0.1") << forwarded.substr(0, 20);
}

TEST(TrustedProxies, NetworksThatAreNoneAreRefused) {
  for (const char* word : {"", "10", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "::/129", "localhost", "/8", "unix/8"})
    EXPECT_FALSE(TrustedProxies::parse({word})) << word;
  EXPECT_EQ(TrustedProxies::parse({"0.0.0.0/0"}).value().client("203.0.113.7:80", "unknown"), "203.0.113.7");
}

TEST_F(RequestLog, NamesThePathOfWhatReachedNoRouteAndCutsIt) {
  TestServer server(options());
  server.ask(get("/v1/none\"x?secret=1"));
  server.ask(get("/" + std::string(5000, 'y')));
  server.ask("nonsense\r\n\r\n");
  EXPECT_NE(lines(server, "route=\"/v1/none\\\"x\" status=404 reason=refused").size(), 0U) << log.str();
  EXPECT_EQ(lines(server, "yyyy").at(0).find(std::string(300, 'y')), std::string::npos);
  EXPECT_EQ(lines(server, "status=400").size(), 1U);
  server.on_loop([&] { EXPECT_EQ(log.str().find("secret"), std::string::npos); });
}

TEST_F(RequestLog, WhatIsLeftOutOfARequestIsNamedAtDebug) {
  net::ServerOptions told = options();
  told.log.logger->set_level(spdlog::level::debug);
  TestServer server(told);
  server.ask(post("/v1/responses", R"({"input":[{"role":"user","content":"x"},{"type":"web_search_call"},{"type":"item_of_next_year"}],)"
                                   R"("tools":[{"type":"web_search"},{"type":"mcp","server_label":"a"}]})"));
  EXPECT_EQ(lines(server, "debug items of a request are left out request=").size(), 1U);
  EXPECT_EQ(lines(server, R"(names="item_of_next_year, web_search_call")").size(), 1U);
  server.ask(post("/v1/messages", R"({"max_tokens":9,"tools":[{"type":"tool_of_next_year"}],"messages":[{"role":"user","content":[)"
                                  R"({"type":"text","text":"a"},{"type":"block_of_next_year"}]}]})"));
  EXPECT_EQ(lines(server, "debug tools of a request are left out request=", 2).size(), 2U);
  EXPECT_EQ(lines(server, "names=tool_of_next_year").size(), 1U);
  EXPECT_EQ(lines(server, "names=block_of_next_year").size(), 1U);
}

TEST_F(RequestLog, WhatIsRefusedHasItsLineBeforeItsClientHasReadThat) {
  net::ServerOptions lingering = options();
  lingering.linger_timeout = 1h;
  TestServer server(lingering);
  RawClient client = server.connect();
  client.send("GET\r\n\r\n");
  EXPECT_EQ(lines(server, "status=400").size(), 1U);
  server.on_loop([&] { EXPECT_EQ(server.server().open_connections(), 1U); });
}

TEST_F(RequestLog, AClientThatGoesIsOneLine) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":[1],"stream":true})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  client.reset();
  EXPECT_NE(abort_line(server).find(R"(reason="client gone")"), std::string::npos);
  EXPECT_EQ(lines(server, "status=499").size(), 1U);
}

TEST_F(RequestLog, AClientThatTakesNothingIsOneLine) {
  net::ServerOptions slow = options();
  slow.write_timeout = 50ms;
  TestServer server(slow);
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of(std::string(20'000, 'a')); }; });
  RawClient client = server.connect(1024);
  for (int i = 0; i < 60; ++i) client.send(post("/v1/completions", R"({"prompt":[1],"stream":true})"));
  EXPECT_TRUE(server.eventually([&] { return log.str().find("request aborted") != std::string::npos; }));
  const std::vector<std::string> aborted = lines(server, "request aborted");
  ASSERT_EQ(aborted.size(), 1U);
  EXPECT_NE(aborted[0].find(R"(reason="write timeout")"), std::string::npos) << aborted[0];
}

TEST_F(RequestLog, AnAbortByIdIsOneLine) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":[1],"stream":true})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.engine().cancel(server.engine().submitted[0].id); });
  client.read_reply();
  EXPECT_NE(abort_line(server).find(R"(reason="cancelled by id")"), std::string::npos);
}

TEST_F(RequestLog, AReaderWhomTheEngineDropsIsOneLine) {
  TestServer server(options());
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      Finish finish;
      finish.reason = FinishReason::kCancelled;
      finish.error = Error{ErrorCode::kCancelled, "it has read nothing", ""};
      return std::vector<TokenEvent>{Token{'a', 0.0F, {}}, finish};
    };
  });
  server.ask(post("/v1/completions", R"({"prompt":[1],"stream":true})"));
  EXPECT_NE(abort_line(server).find(R"(reason="slow reader" error="it has read nothing")"), std::string::npos);
}

// Nor does a client that tries again by itself undo it.
TEST_F(RequestLog, AnAbortOfAWholeAnswerIsNoServerError) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":[1]})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.engine().cancel(server.engine().submitted[0].id); });
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 499);
  EXPECT_FALSE(reply.headers.contains("retry-after"));
  EXPECT_NE(reply.body.find(R"("code":"cancelled")"), std::string::npos);
  EXPECT_NE(abort_line(server).find(R"(reason="cancelled by id")"), std::string::npos);
}

TEST_F(RequestLog, WhatTheServersEndTakesIsOneLine) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":[1]})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  server.on_loop([&] { server.server().abort_connections("test"); });
  EXPECT_NE(abort_line(server).find(R"(reason="server drain")"), std::string::npos);
}

TEST_F(RequestLog, AnAnswerThatTheDrainEndsIsOneLine) {
  TestServer server(options());
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      Finish finish;
      finish.reason = FinishReason::kCancelled;
      finish.error = Error{ErrorCode::kDraining, "the server shut down", ""};
      return std::vector<TokenEvent>{Token{'a', 0.0F, {}}, finish};
    };
  });
  server.ask(post("/v1/completions", R"({"prompt":[1],"stream":true})"));
  const std::string line = abort_line(server);
  EXPECT_TRUE(line.starts_with("warning ")) << line;
  EXPECT_NE(line.find(R"(reason="server drain" error="the server shut down")"), std::string::npos) << line;
}

TEST_F(RequestLog, AnAnswerThatFailsInsideIsOneLine) {
  TestServer server(options());
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      Finish finish;
      finish.reason = FinishReason::kError;
      finish.error = Error{ErrorCode::kInternal, "the step failed", ""};
      return std::vector<TokenEvent>{finish};
    };
  });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":[1]})")).status, 500);
  const std::string line = abort_line(server);
  EXPECT_TRUE(line.starts_with("error ")) << line;
  EXPECT_NE(line.find("reason=internal"), std::string::npos) << line;
}

TEST_F(RequestLog, WithoutItOnlyAbortsAreWritten) {
  net::ServerOptions quiet = options();
  quiet.log.access = false;
  TestServer server(quiet);
  server.ask(post("/v1/completions", R"({"prompt":[1]})"));
  server.ask(get("/v1/none"));
  server.on_loop([&] { EXPECT_EQ(log.str(), ""); });
}

TEST(RequestIds, AreInEveryAnswer) {
  net::ServerOptions options = test_options();
  options.api_keys = {{"a", net::access::digest_of("sk"), {}}};
  options.header_timeout = 30ms;
  TestServer server(options);
  const std::string id = "X-Request-Id: my-id\r\n";
  const std::string let_in = id + "x-api-key: sk\r\n";
  for (const std::string& request :
       {get("/health", id), get("/v1/models", id), get("/v1/none", id), get("/v1/completions", id),
        "OPTIONS /v1/models HTTP/1.1\r\nHost: a\r\n" + id + "\r\n", post("/v1/completions", "{", let_in),
        post("/v1/completions", R"({"prompt":"a"})", let_in), post("/v1/completions", R"({"prompt":"a","stream":true})", let_in),
        post("/tokenize", R"({"content":"a"})", let_in)})
    EXPECT_EQ(server.ask(request).headers.at("x-request-id"), "my-id") << request;
  for (const std::string_view malformed : {"hello\r\n\r\n", "GET /health HTTP/1.1\r\nHost", "GET /health HTTP/3.0\r\n\r\n"})
    EXPECT_EQ(normalized(server.ask(malformed).headers.at("x-request-id")), "req-ID") << malformed;
}

TEST(RequestIds, ThatAreUnfitAreReplaced) {
  TestServer server;
  for (const std::string& id : {std::string("a b"), std::string(129, 'x'), std::string("\xC3\xA4"), std::string("a\tb")})
    EXPECT_EQ(normalized(server.ask(get("/health", "X-Request-Id: " + id + "\r\n")).headers.at("x-request-id")), "req-ID") << id;
  const std::string longest(128, 'x');
  EXPECT_EQ(server.ask(get("/health", "X-Request-Id: " + longest + "\r\n")).headers.at("x-request-id"), longest);
}

}  // namespace
}  // namespace braid::test
