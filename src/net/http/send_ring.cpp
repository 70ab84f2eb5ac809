#include "net/http/send_ring.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <liburing.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace braid::net::http {
namespace {

constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;  // the former lets the kernel neither wait nor hand over to a thread of its own

class UringSendRing final : public SendRing {
 public:
  explicit UringSendRing(const io_uring& ring) : ring_(ring) {}
  ~UringSendRing() override { ::io_uring_queue_exit(&ring_); }
  UringSendRing(const UringSendRing&) = delete;
  UringSendRing& operator=(const UringSendRing&) = delete;

  void send(std::span<Outgoing> batch) override {
    for (; !batch.empty(); batch = batch.subspan(std::min(batch.size(), kDepth))) send_some(batch.first(std::min(batch.size(), kDepth)));
  }

 private:
  void send_some(std::span<Outgoing> batch) {
    for (Outgoing& one : batch) {
      io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);  // the ring is empty between two calls
      ::io_uring_prep_send(entry, one.socket, one.bytes, one.size, kFlags);
      ::io_uring_sqe_set_data(entry, &one);
    }
    for (auto left = static_cast<unsigned>(batch.size()); left > 0;) {
      const int submitted = ::io_uring_submit_and_wait(&ring_, left);
      if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) std::abort();  // a bug: the ring is ours
      io_uring_cqe* completion = nullptr;
      while (::io_uring_peek_cqe(&ring_, &completion) == 0) {
        static_cast<Outgoing*>(::io_uring_cqe_get_data(completion))->result = completion->res;
        ::io_uring_cqe_seen(&ring_, completion);
        --left;
      }
    }
  }

  io_uring ring_;
};

// Who may make a ring may still be forbidden to use it: each system call has a rule of its own in seccomp. Nothing is submitted: the end of
// a ring interrupts the threads that have.
bool can_enter(const io_uring& ring) { return ::syscall(__NR_io_uring_enter, ring.ring_fd, 0, 0, 0, nullptr, 0) == 0; }

// Since Linux 5.6.
bool can_send(io_uring& ring) {
  const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(::io_uring_get_probe_ring(&ring), ::io_uring_free_probe);
  return probe != nullptr && ::io_uring_opcode_supported(probe.get(), IORING_OP_SEND) != 0;
}

}  // namespace

std::unique_ptr<SendRing> SendRing::make() {
  io_uring ring;
  if (::io_uring_queue_init(kDepth, &ring, 0) != 0) return nullptr;
  if (can_send(ring) && can_enter(ring)) return std::make_unique<UringSendRing>(ring);
  ::io_uring_queue_exit(&ring);
  return nullptr;
}

void send_each(std::span<Outgoing> batch) {
  for (Outgoing& one : batch) {
    const ssize_t sent = ::send(one.socket, one.bytes, one.size, kFlags);
    one.result = sent < 0 ? -errno : static_cast<int>(sent);
  }
}

}  // namespace braid::net::http
