// A process that this one starts and ends.
#pragma once

#include "braid/result.h"
#include "ranks/channel.h"

#include <chrono>
#include <string>
#include <sys/types.h>
#include <vector>

namespace braid::ranks {

class ChildProcess {
 public:
  // In a process group of its own; reads nothing, and writes to this one's standard error. command[0] is looked for in PATH.
  static Result<ChildProcess> start(std::vector<std::string> command, std::vector<std::string> environment);
  ~ChildProcess();  // kills it, and its group, unless it has ended
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  pid_t id() const { return id_; }
  int handle() const { return handle_; }  // can be read once it has ended

  // Leaves it that long to end by itself.
  void await(std::chrono::milliseconds limit);

 private:
  ChildProcess(pid_t id, int handle) : id_(id), handle_(handle) {}

  bool has_ended(std::chrono::milliseconds limit) const;

  pid_t id_;
  int handle_;  // pidfd
};

}  // namespace braid::ranks
