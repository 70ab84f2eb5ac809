#include "app/log_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace braid::app {
namespace {

// Does not wait for whoever would read a pipe.
net::FileDescriptor open_to_append(const std::string& path) {
  return net::FileDescriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640));
}

Error unwritable(const std::string& path) { return {ErrorCode::kIo, fmt::format("--log-file '{}': {}", path, std::strerror(errno)), ""}; }

}  // namespace

Result<LogFile> LogFile::open(std::string path) {
  net::FileDescriptor file = open_to_append(path);
  if (file.get() < 0) return unwritable(path);
  return LogFile(std::move(path), std::move(file));
}

Result<void> LogFile::reopen() const {
  const net::FileDescriptor file = open_to_append(path_);
  if (file.get() < 0 || ::dup3(file.get(), file_.get(), O_CLOEXEC) < 0) return unwritable(path_);
  return {};
}

}  // namespace braid::app
