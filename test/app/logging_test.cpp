// The lines of the program's log.
#include "app/logging.h"

#include "app/standard_stream.h"
#include "app/tracing/otlp_spans.h"
#include "net/json/parse.h"
#include "net/log/line.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

using net::LogFormat;

std::string formatted(LogFormat format, const char* logger, std::string_view payload) {
  spdlog::details::log_msg message(spdlog::log_clock::time_point(std::chrono::milliseconds(1'795'250'916'042)), {}, logger,
                                   spdlog::level::warn, spdlog::string_view_t(payload.data(), payload.size()));
  spdlog::memory_buf_t line;
  line_formatter(format)->format(message, line);
  return {line.data(), line.size()};
}

TEST(Logging, AMessageIsOneLineOfText) {
  EXPECT_EQ(formatted(LogFormat::kText, "braid", "loading\n2026 forged \x1b[2J"),
            "2026-11-21T08:48:36.042Z warning loading\\x0a2026 forged \\x1b[2J\n");
}

TEST(Logging, AMessageIsOneObjectOfJson) {
  std::string line = formatted(LogFormat::kJson, "braid", "a\n\"b\\ \xff,\"level\":\"x\"");
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Result<Value> read = net::json::parse(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->find("time")->get_if<std::string>(), "2026-11-21T08:48:36.042Z");
  EXPECT_EQ(*read->find("level")->get_if<std::string>(), "warning");
  EXPECT_EQ(*read->find("message")->get_if<std::string>(), "a\n\"b\\ \xEF\xBF\xBD,\"level\":\"x\"");
}

TEST(Logging, ARequestsValuesAreMembers) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    net::LogLine line(format, "request");
    line.add("route", "/x y");
    EXPECT_EQ(formatted(format, kRequestLogger, line.text()),
              format == LogFormat::kText
                  ? "2026-11-21T08:48:36.042Z warning request route=\"/x y\"\n"
                  : "{\"time\":\"2026-11-21T08:48:36.042Z\",\"level\":\"warning\",\"message\":\"request\",\"route\":\"/x y\"}\n");
  }
}

// A span as the numbers of its beginning and end, in nanoseconds.
std::pair<std::int64_t, std::int64_t> times_of(const Value& span) {
  const auto number = [&span](const char* name) { return std::stoll(*span.find(name)->get_if<std::string>()); };
  return {number("startTimeUnixNano"), number("endTimeUnixNano")};
}

ValueList spans_of(const std::vector<net::RequestTrace>& traces) {
  std::mt19937_64 random(7);
  std::string text = otlp_spans(traces, random);
  const Value document = net::json::parse(text).value();
  const Value& resource = document.find("resourceSpans")->get_if<ValueList>()->front();
  const Value& scope = resource.find("scopeSpans")->get_if<ValueList>()->front();
  return *scope.find("spans")->get_if<ValueList>();
}

net::RequestTrace some_trace() {
  net::RequestTrace trace;
  trace.method = "POST";
  trace.route = "/completions";
  trace.status = 200;
  trace.begin = std::chrono::system_clock::time_point(std::chrono::milliseconds(1000));
  trace.end = std::chrono::milliseconds(100);
  trace.work = std::chrono::milliseconds(1);
  return trace;
}

const std::string& name_of(const Value& span) { return *span.find("name")->get_if<std::string>(); }

TEST(Spans, ArePhasesOneAfterTheOther) {
  net::RequestTrace trace = some_trace();
  trace.parent = net::TraceParent{std::string(32, 'a'), std::string(16, 'b'), true};
  trace.submitted = std::chrono::milliseconds(3);
  trace.usage = {.prompt_tokens = 5, .completion_tokens = 7, .queue_ms = 10.0, .prompt_ms = 20.0, .generation_ms = 60.0};
  const ValueList spans = spans_of({trace});
  ASSERT_EQ(spans.size(), 6U);
  EXPECT_EQ(name_of(spans[0]), "POST /completions");
  EXPECT_EQ(*spans[0].find("parentSpanId")->get_if<std::string>(), std::string(16, 'b'));
  const std::vector<std::pair<std::string, std::int64_t>> ends = {
      {"tokenise", 3}, {"queue", 13}, {"prefill", 31}, {"decode", 91}, {"write", 100}};
  std::int64_t before = 1;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Value& span = spans[i + 1];
    EXPECT_EQ(name_of(span), ends[i].first);
    EXPECT_EQ(*span.find("traceId")->get_if<std::string>(), std::string(32, 'a'));
    EXPECT_EQ(*span.find("parentSpanId")->get_if<std::string>(), *spans[0].find("spanId")->get_if<std::string>());
    EXPECT_EQ(times_of(span), std::pair((1000 + before) * 1'000'000, (1000 + ends[i].second) * 1'000'000)) << ends[i].first;
    before = ends[i].second;
  }
}

TEST(Spans, EndWhereTheRequestHasEnded) {
  const auto names = [](const net::RequestTrace& trace) {
    std::string line;
    const ValueList spans = spans_of({trace});
    for (const Value& span : spans) line += name_of(span) + " ";
    EXPECT_EQ(times_of(spans.back()).second, times_of(spans.front()).second);
    return line;
  };
  net::RequestTrace trace = some_trace();
  EXPECT_EQ(names(trace), "POST /completions tokenise ");
  trace.submitted = std::chrono::milliseconds(3);
  EXPECT_EQ(names(trace), "POST /completions tokenise queue ");
  trace.usage.queue_ms = 10.0;
  EXPECT_EQ(names(trace), "POST /completions tokenise queue prefill ");
  trace.usage = {.completion_tokens = 1, .queue_ms = 500.0, .prompt_ms = 500.0, .generation_ms = 500.0};  // clocks that do not agree
  EXPECT_EQ(names(trace), "POST /completions tokenise queue prefill decode write ");
}

TEST(Spans, TellOfFailuresAndQuoteWhatTheyAreTold) {
  net::RequestTrace trace = some_trace();
  trace.model = "a\"b\xff";
  EXPECT_EQ(spans_of({trace, trace}).front().find("status"), nullptr);
  trace.status = 500;
  trace.error = "a \"reason\"\n";
  const Value span = spans_of({trace}).front();
  EXPECT_EQ(*span.find("status")->find("message")->get_if<std::string>(), trace.error);
}

// A pipe whose reader has stopped, filled by somebody else.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETPIPE_SZ, 4096), 4096);
  }
  ~FullPipe() {
    for (const int end : ends_) ::close(end);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  int in() const { return ends_[1]; }
  int out() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_{};
};

TEST(StandardStream, TakesWhatThereIsRoomForAndNeverWaitsForMore) {
  const FullPipe pipe;
  const std::string line(4096, 'x');
  EXPECT_EQ(write_patiently(pipe.in(), line, {}), 4096U);
  EXPECT_EQ(write_patiently(pipe.in(), line, {}), 0U);
  std::string read(4096, ' ');
  EXPECT_EQ(::read(pipe.out(), read.data(), read.size()), 4096);
  EXPECT_EQ(read, line);
  EXPECT_EQ(write_patiently(pipe.in(), "again", {}), 5U);
}

TEST(StandardStream, WithoutAReaderNothingIsTaken) {
  ::signal(SIGPIPE, SIG_IGN);
  const FullPipe pipe;
  ASSERT_GE(::dup3(::open("/dev/null", O_RDONLY | O_CLOEXEC), pipe.out(), O_CLOEXEC), 0);
  EXPECT_EQ(write_patiently(pipe.in(), "line", {}), 0U);
  EXPECT_EQ(write_patiently(-1, "line", {}), 0U);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace braid::app
