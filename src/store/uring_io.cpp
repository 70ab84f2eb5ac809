#include "store/io.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <liburing.h>
#include <memory>
#include <mutex>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::store {

namespace {

constexpr unsigned kDepth = 64;  // transfers in the kernel at once
constexpr std::size_t kLargestPiece = std::size_t{1} << 30;

// Its thread owns the ring and sleeps in it. New transfers lie in the inbox; an eventfd, read through the ring, tells of them.
class UringIo final : public Io {
 public:
  UringIo(const io_uring& ring, int bell) : ring_(ring), bell_(bell) {
    thread_ = std::thread([this] { run(); });
  }

  ~UringIo() override {
    stop_.store(true);
    ring_bell();
    thread_.join();
    ::io_uring_queue_exit(&ring_);
    ::close(bell_);
  }

  void submit(Transfer transfer) override {
    {
      const std::lock_guard lock(mutex_);
      inbox_.push_back(std::move(transfer));
    }
    ring_bell();
  }
  const char* name() const override { return "io_uring"; }

 private:
  struct Running {
    Transfer transfer;
    std::size_t done = 0;
  };

  void ring_bell() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(bell_, &one, sizeof one);
    assert(written == sizeof one);
  }

  // The ring has room for kDepth transfers and the bell.
  io_uring_sqe* next_entry() {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    assert(entry != nullptr);
    return entry;
  }

  void listen() {
    io_uring_sqe* entry = next_entry();
    ::io_uring_prep_read(entry, bell_, &rings_, sizeof rings_, 0);
    ::io_uring_sqe_set_data(entry, nullptr);
  }

  void begin(Running* running) {
    const Transfer& transfer = running->transfer;
    std::byte* const at = transfer.bytes.data() + running->done;
    const auto left = static_cast<unsigned>(std::min(kLargestPiece, transfer.bytes.size() - running->done));
    io_uring_sqe* entry = next_entry();
    if (transfer.kind == Transfer::Kind::kRead) {
      ::io_uring_prep_read(entry, transfer.file, at, left, transfer.offset + running->done);
    } else {
      ::io_uring_prep_write(entry, transfer.file, at, left, transfer.offset + running->done);
    }
    ::io_uring_sqe_set_data(entry, running);
  }

  void take_inbox() {
    const std::lock_guard lock(mutex_);
    for (Transfer& transfer : inbox_) waiting_.push_back(std::move(transfer));
    inbox_.clear();
  }

  void begin_waiting() {
    for (; running_ < kDepth && !waiting_.empty(); waiting_.pop_front()) {
      auto running = std::make_unique<Running>(Running{std::move(waiting_.front())});
      if (running->transfer.before) running->transfer.before();
      ++running_;
      begin(running.release());  // the ring owns it until it completes
    }
  }

  void on_completed(Running* running, int result) {
    if (result == -EINTR || result == -EAGAIN) return begin(running);
    if (result > 0) {
      running->done += static_cast<std::size_t>(result);
      if (running->done < running->transfer.bytes.size()) return begin(running);
    }
    --running_;
    const std::unique_ptr<Running> ended(running);
    ended->transfer.after(result < 0 ? -result : result == 0 ? EIO : 0);
  }

  void run() {
    for (listen(); !stop_.load() || running_ > 0;) {
      const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
      if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) std::abort();  // a bug: the ring is ours
      io_uring_cqe* completion = nullptr;
      while (::io_uring_peek_cqe(&ring_, &completion) == 0) {
        auto* running = static_cast<Running*>(::io_uring_cqe_get_data(completion));
        const int result = completion->res;
        ::io_uring_cqe_seen(&ring_, completion);
        if (running != nullptr) {
          on_completed(running, result);
        } else if (!stop_.load()) {
          take_inbox();
          listen();
        }
      }
      if (!stop_.load()) begin_waiting();
    }
  }

  io_uring ring_;
  const int bell_;
  std::uint64_t rings_ = 0;       // what the bell's read writes to
  std::deque<Transfer> waiting_;  // taken from the inbox, not begun
  unsigned running_ = 0;          // in the kernel
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // of the inbox
  std::vector<Transfer> inbox_;
  std::thread thread_;
};

// Not before Linux 5.6: there is a ring since 5.1, but it refuses such entries, those that hear the bell included.
bool can_transfer(io_uring& ring) {
  const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(::io_uring_get_probe_ring(&ring), ::io_uring_free_probe);
  return probe != nullptr && ::io_uring_opcode_supported(probe.get(), IORING_OP_READ) != 0 &&
         ::io_uring_opcode_supported(probe.get(), IORING_OP_WRITE) != 0;
}

}  // namespace

std::unique_ptr<Io> make_uring_io() {
  io_uring ring;
  if (::io_uring_queue_init(2 * kDepth, &ring, 0) != 0) return nullptr;
  const int bell = can_transfer(ring) ? ::eventfd(0, EFD_CLOEXEC) : -1;
  if (bell < 0) {
    ::io_uring_queue_exit(&ring);
    return nullptr;
  }
  return std::make_unique<UringIo>(ring, bell);
}

}  // namespace braid::store
