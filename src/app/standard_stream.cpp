#include "app/standard_stream.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace braid::app {
namespace {

constexpr std::size_t kMostBytes = 4096;  // PIPE_BUF: what poll() promises of a pipe

// Somebody else may have filled the pipe since poll(). Only the call can say that it must not wait: the file's own flag is shared with
// whoever else has it. Kernels that do not know that of pipes are taken at poll()'s word.
ssize_t write_without_waiting(int file, std::string_view bytes) {
  struct stat kind {};
  if (::fstat(file, &kind) == 0 && (S_ISFIFO(kind.st_mode) || S_ISSOCK(kind.st_mode))) {
    const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    const ssize_t written = ::pwritev2(file, &piece, 1, -1, RWF_NOWAIT);
    if (written >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)) return written;
  }
  return ::write(file, bytes.data(), bytes.size());
}

}  // namespace

std::size_t write_patiently(int file, std::string_view bytes, std::chrono::milliseconds patience) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    pollfd ready{file, POLLOUT, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(patience.count()));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) break;
    const ssize_t written = write_without_waiting(file, rest.substr(0, kMostBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return bytes.size() - rest.size();
}

void complain(std::string_view sentence) { write_patiently(STDERR_FILENO, fmt::format("braid: {}\n", sentence)); }

}  // namespace braid::app
