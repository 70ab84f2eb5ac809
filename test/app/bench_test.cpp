// The load generator against a server that plays scripted answers.
#include "app/bench/bench.h"

#include "app/bench/response_reader.h"
#include "app/bench/summary.h"
#include "app/bench/target.h"
#include "app/bench/workload.h"
#include "support/folder.h"

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <simdjson.h>
#include <string>
#include <thread>
#include <vector>

namespace braid::bench {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

std::string chunk(const std::string& data) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return size + data + "\r\n";
}

std::string completion(int tokens, const std::string& word = "a") {
  std::string out = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n" + chunk(": ping\n\n");
  for (int i = 0; i < tokens; ++i) out += chunk("data: {\"choices\":[{\"text\":\"" + word + "\",\"finish_reason\":null}]}\n\n");
  out += chunk("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n");
  out += chunk("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":" + std::to_string(tokens) + "}}\n\n");
  return out + chunk("data: [DONE]\n\n") + "0\r\n\r\n";
}

// Answers the n-th request on the n-th connection with what `script` says; an answer in plain bytes closes when it is empty.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> script)
      : script_(std::move(script)), acceptor_(io_, {asio::ip::address_v4::loopback(), 0}) {
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    tcp::socket knock(io_);  // wakes the accept that waits
    boost::system::error_code ignored;
    knock.connect({asio::ip::address_v4::loopback(), port_}, ignored);
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  const std::vector<std::string>& requests() const { return requests_; }  // valid once the clients are done

 private:
  void serve() {
    while (true) {
      tcp::socket socket(io_);
      boost::system::error_code error;
      acceptor_.accept(socket, error);
      if (error || stopping_) return;
      while (answer_one(socket)) {
      }
    }
  }

  bool answer_one(tcp::socket& socket) {
    boost::system::error_code error;
    std::string text;
    const auto head = asio::read_until(socket, asio::dynamic_buffer(text), "\r\n\r\n", error);
    if (error) return false;
    const std::size_t said = text.find("Content-Length: ");
    const auto length = said == std::string::npos ? 0 : std::stoul(text.substr(said + 16));
    if (text.size() < head + length)
      asio::read(socket, asio::dynamic_buffer(text), asio::transfer_exactly(head + length - text.size()), error);
    requests_.push_back(text);
    const std::string answer = next_ < script_.size() ? script_[next_++] : std::string();
    asio::write(socket, asio::buffer(answer), error);
    return !error && answer.find("HTTP/1.1") == 0 && answer.find("\r\n0\r\n\r\n") != std::string::npos;
  }

  std::vector<std::string> script_;
  std::size_t next_ = 0;
  std::vector<std::string> requests_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

struct Ran {
  int code = 0;
  std::string json;
};

Ran run(BenchOptions options) {
  const auto path = std::filesystem::temp_directory_path() / ("braid_bench_" + std::to_string(::getpid()) + ".json");
  options.quiet = true;
  options.json_file = path.string();
  Ran ran;
  ran.code = run_bench(options);
  simdjson::padded_string text;
  if (simdjson::padded_string::load(options.json_file).get(text) == simdjson::SUCCESS) ran.json = std::string(std::string_view(text));
  std::filesystem::remove(path);
  return ran;
}

std::int64_t integer(const std::string& json, const std::string& key) {
  simdjson::dom::parser parser;
  return parser.parse(json)[key].get_int64().value();
}

TEST(Bench, CountsTokensByUsageOverOneKeptConnection) {
  ScriptedServer server({completion(3), completion(5), completion(4)});
  BenchOptions options;
  options.base_url = server.url();
  options.num_prompts = 2;
  options.warmup = 1;
  options.max_concurrency = 1;
  const Ran ran = run(options);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(integer(ran.json, "completed"), 2);
  EXPECT_EQ(integer(ran.json, "total_output_tokens"), 9);
  EXPECT_EQ(integer(ran.json, "total_input_tokens"), 10);
  ASSERT_EQ(server.requests().size(), 3U);
  EXPECT_THAT(server.requests()[0], testing::HasSubstr("POST /v1/completions HTTP/1.1"));
  EXPECT_THAT(server.requests()[0], testing::HasSubstr("\"stream_options\":{\"include_usage\":true}"));
}

std::string whole(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string figures(double user, double memory) {
  return whole("# TYPE process_cpu_user_seconds_total counter\nprocess_cpu_user_seconds_total " + std::to_string(user) +
               "\nprocess_cpu_system_seconds_total 1.5\nprocess_resident_memory_bytes " + std::to_string(memory) + "\n");
}

TEST(Bench, MeasuresWholeAnswersAndWhatTheServerSaysOfItself) {
  const std::string answer = whole(R"({"data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":12}})");
  ScriptedServer server({figures(2.0, 1e6), answer, answer, figures(5.0, 3e6)});
  BenchOptions options;
  options.base_url = server.url();
  options.endpoint = Endpoint::kEmbeddings;
  options.num_prompts = 2;
  options.batch_size = 4;
  options.max_concurrency = 1;
  const Ran ran = run(options);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(integer(ran.json, "completed"), 2);
  EXPECT_EQ(integer(ran.json, "items"), 8);
  EXPECT_EQ(integer(ran.json, "total_input_tokens"), 24);
  EXPECT_EQ(integer(ran.json, "total_output_tokens"), 0);
  simdjson::dom::parser parser;
  EXPECT_DOUBLE_EQ(parser.parse(ran.json)["server_cpu_seconds"].get_double().value(), 3.0);
  EXPECT_DOUBLE_EQ(parser.parse(ran.json)["server_resident_bytes"].get_double().value(), 3e6);
  EXPECT_GT(parser.parse(ran.json)["mean_e2el_ms"].get_double().value(), 0.0);
  ASSERT_EQ(server.requests().size(), 4U);
  EXPECT_THAT(server.requests()[0], testing::HasSubstr("GET /metrics HTTP/1.1"));
  EXPECT_THAT(server.requests()[1], testing::HasSubstr("POST /v1/embeddings HTTP/1.1"));
}

TEST(Bench, SaysThatAWholeAnswerIsNone) {
  ScriptedServer server({"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", whole("[1,"), whole(R"({"data":[]})")});
  BenchOptions options;
  options.base_url = server.url();
  options.endpoint = Endpoint::kClassify;
  options.num_prompts = 2;
  options.max_concurrency = 1;
  const Ran ran = run(options);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(integer(ran.json, "completed"), 1);
  EXPECT_THAT(ran.json, testing::HasSubstr("\"protocol\":1"));
  EXPECT_THAT(ran.json, testing::Not(testing::HasSubstr("server_cpu_seconds"))) << "it has no metrics";
}

TEST(BenchWorkload, AsksEachRouteForWhatItTakes) {
  BenchOptions options;
  options.input_len = 3;
  options.batch_size = 2;
  const auto body_of = [&options](const char* endpoint) {
    options.endpoint = endpoint_named(endpoint).value();
    return make_bodies(options, 1).value().front();
  };
  simdjson::dom::parser parser;
  const auto size_of = [&](const std::string& body, const char* list) { return parser.parse(body)[list].get_array().value().size(); };
  EXPECT_EQ(size_of(body_of("embeddings"), "input"), 2U);
  EXPECT_EQ(size_of(body_of("classify"), "input"), 2U);
  EXPECT_EQ(size_of(body_of("rerank"), "documents"), 2U);
  EXPECT_EQ(size_of(body_of("score"), "text_2"), 2U);
  EXPECT_THAT(body_of("rerank"), testing::HasSubstr("\"query\":\"0 "));
  options.tensors = {parse_tensor("x=2x3").value()};
  const std::string prediction = body_of("predict");
  EXPECT_THAT(prediction, testing::HasSubstr(R"("inputs":{"x":{"shape":[2,3],"dtype":"float32","data":")"));
  EXPECT_THAT(prediction, testing::Not(testing::HasSubstr("\"model\""))) << "a network has no default name";
  for (const char* text : {"x", "=3", "x=", "x=0", "x=2x", "x=2xx3", "x=-1", "x=3y", "x=99999999999"})
    EXPECT_FALSE(parse_tensor(text)) << text;
}

TEST(Bench, TellsFailuresApart) {
  ScriptedServer server({
      completion(2),
      "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\n",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {\"error\":{\"message\":\"no\"}}\n\n",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"error\":\"no\"}\n\ndata: [DONE]\n\n",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: "
      "{\"object\":\"error\",\"message\":\"no\"}\n\ndata: [DONE]\n\n",
      "not http at all, for sure\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nda",
  });
  BenchOptions options;
  options.base_url = server.url();
  options.num_prompts = 8;
  options.max_concurrency = 1;
  const Ran ran = run(options);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(integer(ran.json, "completed"), 1);
  for (const auto* kind : {"\"http_429\":1", "\"truncated\":1", "\"stream_error\":3", "\"protocol\":1", "\"disconnect\":1"})
    EXPECT_THAT(ran.json, testing::HasSubstr(kind));
}

TEST(Bench, HoldsAnswersAgainstThoseOfTheSamePromptAlone) {
  // One prompt alone, then the same one twice: the second time with another text.
  ScriptedServer server({completion(3, "b"), completion(3, "b"), completion(3, "c")});
  BenchOptions options;
  options.base_url = server.url();
  options.num_prompts = 2;
  options.distinct = 1;
  options.verify = true;
  options.max_concurrency = 1;
  const Ran ran = run(options);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(integer(ran.json, "completed"), 1);
  simdjson::dom::parser parser;
  EXPECT_EQ(parser.parse(ran.json)["failures"]["wrong_text"].get_int64().value(), 1);
}

TEST(Bench, EndsARequestAtItsTimeout) {
  ScriptedServer server({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n\r\n0\r\n\r\n"});  // a chunk that never comes whole
  BenchOptions options;
  options.base_url = server.url();
  options.num_prompts = 1;
  options.timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(run(options).json, testing::HasSubstr("\"timeout\":1"));
}

TEST(Bench, ReportsThatNothingListens) {
  BenchOptions options;
  options.num_prompts = 1;
  options.base_url = "http://127.0.0.1:1";
  EXPECT_THAT(run(options).json, testing::HasSubstr("\"connect\":1"));
}

TEST(BenchReader, ReadsTheSameEventsHoweverTheBytesAreCut) {
  const std::string bytes = completion(3);
  for (std::size_t step = 1; step < 40; ++step) {
    std::vector<std::string> events;
    ResponseReader reader([&](std::string_view data) { events.emplace_back(data); });
    for (std::size_t at = 0; at < bytes.size(); at += step) reader.feed(std::string_view(bytes).substr(at, step));
    EXPECT_EQ(reader.state(), ResponseReader::State::kDone);
    ASSERT_EQ(events.size(), 6U) << step;
    EXPECT_EQ(events.back(), "[DONE]");
    EXPECT_TRUE(reader.keeps_alive());
  }
}

TEST(BenchReader, GivesUpOnAnEventThatHasNoEnd) {
  for (const bool has_lines : {false, true}) {
    ResponseReader reader([](std::string_view) {});
    reader.feed("HTTP/1.1 200 OK\r\n\r\n");
    std::string piece = "data: " + std::string(1 << 20, 'a');
    if (has_lines) piece += '\n';
    for (int i = 0; i < 64 && reader.state() == ResponseReader::State::kBody; ++i) reader.feed(piece);
    EXPECT_EQ(reader.state(), ResponseReader::State::kBroken);
  }
}

TEST(BenchSummary, InterpolatesPercentilesAsNumpyDoes) {
  const std::vector<double> sorted = {1, 2, 3, 4, 10};
  EXPECT_DOUBLE_EQ(percentile(sorted, 50), 3);
  EXPECT_DOUBLE_EQ(percentile(sorted, 90), 7.6);
  EXPECT_DOUBLE_EQ(percentile(sorted, 99), 9.76);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
  EXPECT_DOUBLE_EQ(describe({4, 1, 3, 2, 10}).mean, 4);
}

TEST(BenchSummary, DefinesTimePerOutputTokenAndGoodput) {
  Outcome fast;
  fast.ttft_ms = 100;
  fast.e2el_ms = 500;
  fast.output_tokens = 5;
  fast.input_tokens = 7;
  fast.has_usage = true;
  Outcome slow = fast;
  slow.ttft_ms = 300;
  slow.e2el_ms = 1100;
  Outcome failed;
  failed.failure = "timeout";
  Goodput limits;
  EXPECT_TRUE(parse_goodput("ttft:200", limits));
  EXPECT_TRUE(parse_goodput("itl:150", limits));
  EXPECT_FALSE(parse_goodput("speed:1", limits));
  EXPECT_FALSE(parse_goodput("ttft:1x", limits));
  const Summary summary = summarise({fast, slow, failed}, 2.0, limits);
  EXPECT_EQ(summary.completed, 2);
  EXPECT_DOUBLE_EQ(summary.tpot.mean, 150);
  EXPECT_DOUBLE_EQ(summary.output_throughput, 5);
  EXPECT_DOUBLE_EQ(summary.total_throughput, 12);
  EXPECT_DOUBLE_EQ(*summary.goodput, 0.5);
  EXPECT_EQ(summary.failures.at("timeout"), 1);
}

TEST(BenchReport, WhatAServerSaysSteersNoTerminal) {
  Outcome failed;
  failed.failure = "http_500";
  failed.message =
      "\x1b]0;title\x07 \xC2\x9B"
      "2J\r\nm\xC3\xA9r";
  const std::string report = to_report(summarise({failed}, 1.0, std::nullopt));
  EXPECT_NE(report.find("First failure: http_500: \\x1b]0;title\\x07 \\x9b2J\\x0d\\x0am\xC3\xA9r\n"), std::string::npos) << report;
}

TEST(BenchWorkload, AFileWithoutAnEndIsRefused) {
  BenchOptions options;
  options.prompts_file = "/dev/zero";
  const auto bodies = make_bodies(options, 1);
  ASSERT_FALSE(bodies);
  EXPECT_EQ(bodies.error().message, "/dev/zero: a line is longer than 64 MiB");
}

TEST(BenchWorkload, LinesOfAFileComeWhole) {
  const test::Folder folder;
  BenchOptions options;
  options.prompts_file = folder / "prompts";
  std::ofstream(options.prompts_file) << "{\"prompt\":\"one\"}\n\n{\"prompt\":\"two\"}";
  const auto bodies = make_bodies(options, 2);
  ASSERT_TRUE(bodies);
  EXPECT_THAT((*bodies)[0], testing::HasSubstr("one"));
  EXPECT_THAT((*bodies)[1], testing::HasSubstr("two"));
  std::ofstream(options.prompts_file) << "{\"prompt\":\"one\"}" << '\0' << "{\"prompt\":\"two\"}\n";
  EXPECT_FALSE(make_bodies(options, 2));
}

TEST(BenchTarget, TakesTheForms) {
  EXPECT_EQ(parse_target("http://localhost:8000")->path, "/v1");
  EXPECT_EQ(parse_target("http://localhost:8000/v1/")->path, "/v1");
  EXPECT_EQ(parse_target("http://[::1]:9/api")->host, "::1");
  EXPECT_EQ(parse_target("http://[::1]:9/api")->path, "/api/v1");
  EXPECT_EQ(parse_target("http://example")->port, "80");
  EXPECT_FALSE(parse_target("https://example"));
  EXPECT_FALSE(parse_target("http://:80"));
}

TEST(BenchWorkload, MakesDistinctPromptsThatRepeatWithTheSeed) {
  BenchOptions options;
  options.input_len = 4;
  const auto bodies = make_bodies(options, 50);
  ASSERT_TRUE(bodies);
  EXPECT_EQ(std::set<std::string>(bodies->begin(), bodies->end()).size(), 50U);
  EXPECT_EQ(*make_bodies(options, 50), *bodies);
}

}  // namespace
}  // namespace braid::bench
