#include "ranks/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace braid::ranks {
namespace {

// mpirun takes a second or two of it for processes of its own that do not listen.
constexpr std::chrono::seconds kTermination{5};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// With no signals blocked or ignored, and not reached by a Ctrl-C that is meant for this process.
int spawn(std::vector<char*> command, std::vector<char*> environment, pid_t& id) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);  // sockets of clients, whose end would not be seen
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  const int failed = posix_spawnp(&id, command.front(), &files, &attributes, command.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(std::vector<std::string> command, std::vector<std::string> environment) {
  pid_t id = -1;
  if (const int failed = spawn(pointers_to(command), pointers_to(environment), id); failed != 0)
    return Error{ErrorCode::kIo, fmt::format("{} did not start: {}", command.front(), std::strerror(failed)), {}};
  return ChildProcess(id, static_cast<int>(syscall(SYS_pidfd_open, id, 0)));  // glibc 2.36 declares pidfd_open for C alone
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept : id_(std::exchange(other.id_, -1)), handle_(std::exchange(other.handle_, -1)) {}

ChildProcess::~ChildProcess() {
  if (id_ > 0) {
    kill(-id_, SIGTERM);
    if (!has_ended(kTermination)) kill(-id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  if (handle_ >= 0) close(handle_);
}

void ChildProcess::await(std::chrono::milliseconds limit) {
  if (id_ > 0 && has_ended(limit)) waitpid(std::exchange(id_, -1), nullptr, 0);
}

bool ChildProcess::has_ended(std::chrono::milliseconds limit) const {
  pollfd one{handle_, POLLIN, 0};
  return poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace braid::ranks
