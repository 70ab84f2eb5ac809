#include "app/pid_file.h"

#include "app/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <unistd.h>

namespace braid::app {
namespace {

constexpr std::size_t kMostDigits = 32;

std::string own_line() { return fmt::format("{}\n", ::getpid()); }

}  // namespace

// Whoever reads it finds a whole number: it takes its name when it is finished.
Result<PidFile> PidFile::write(std::string path) {
  const std::string unfinished = fmt::format("{}.{}", path, ::getpid());
  std::ofstream file(unfinished);
  file << own_line();
  file.close();
  if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    const Error error{ErrorCode::kIo, fmt::format("--pid-file '{}': {}", path, std::strerror(errno)), ""};
    ::unlink(unfinished.c_str());
    return error;
  }
  return PidFile(std::move(path));
}

PidFile::~PidFile() {
  if (path_.empty()) return;
  if (const std::optional<std::string> text = read_whole_file(path_, kMostDigits); text && *text == own_line()) ::unlink(path_.c_str());
}

PidFile::PidFile(PidFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

}  // namespace braid::app
