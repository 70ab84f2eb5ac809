// Where a server's log and its other lines go: a file or standard error, and standard output, by a thread of their own.
#pragma once

#include "app/log_file.h"
#include "app/options.h"
#include "net/log/log_tail.h"

#include <memory>
#include <optional>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <string>

namespace braid::app {

// Ends a message's way to its line. Messages of the logger named kRequestLogger are net::LogLine::text(); whatever the others hold,
// control characters included, becomes one line.
inline constexpr char kRequestLogger[] = "requests";
std::unique_ptr<spdlog::formatter> line_formatter(net::LogFormat format);

// While it lives, spdlog's default logger and requests() write to the file, else to standard error, output() to standard output. Whoever
// logs never waits for that: lines wait in a buffer of a few thousand, and when it is full, or standard error takes nothing for a second,
// the oldest are lost; a line says how many.
class Logging {
 public:
  Logging(const LogOptions& options, std::optional<LogFile> file);
  ~Logging();  // returns when what waits is written, or cannot be
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

  void set_level(const std::string& level) const;  // LogOptions::level
  const std::shared_ptr<spdlog::logger>& requests() const { return requests_; }
  const std::shared_ptr<spdlog::logger>& output() const { return output_; }  // lines as they are
  const std::shared_ptr<const net::LogTail>& tail() const { return tail_; }  // of the log
  const std::optional<LogFile>& file() const { return file_; }

 private:
  std::optional<LogFile> file_;
  std::shared_ptr<const net::LogTail> tail_;
  std::shared_ptr<spdlog::logger> requests_;
  std::shared_ptr<spdlog::logger> output_;
};

}  // namespace braid::app
