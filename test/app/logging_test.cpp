// The lines of the program's log.
#include "app/logging.h"

#include "app/standard_stream.h"
#include "net/json/parse.h"
#include "net/log/line.h"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

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
