// Sending on many sockets in one system call, by io_uring.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace braid::net::http {

// What one socket is to take, without waiting.
struct Outgoing {
  int socket = -1;
  const char* bytes = nullptr;
  std::size_t size = 0;
  int result = 0;  // bytes that it took, or a negative errno
};

// A system call costs as much as a third of what the kernel does to send a token, and several times that where system calls are intercepted
// (perf/README.md). One thread at a time.
class SendRing {
 public:
  static constexpr std::size_t kDepth = 64;  // sent at once

  // Null where the kernel does not let us: old, or forbidden by seccomp or sysctl.
  static std::unique_ptr<SendRing> make();
  virtual ~SendRing() = default;

  // Fills in the results. Nothing waits for a socket.
  virtual void send(std::span<Outgoing> batch) = 0;
};

// The same, one after the other.
void send_each(std::span<Outgoing> batch);

}  // namespace braid::net::http
