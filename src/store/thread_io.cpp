#include "store/io.h"
#include "store/worker.h"

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace braid::store {

namespace {

// 0 or an errno.
int move_all(const Transfer& transfer) {
  for (std::size_t done = 0; done < transfer.bytes.size();) {
    std::byte* const at = transfer.bytes.data() + done;
    const std::size_t left = transfer.bytes.size() - done;
    const auto offset = static_cast<off_t>(transfer.offset + done);
    const ssize_t moved =
        transfer.kind == Transfer::Kind::kRead ? ::pread(transfer.file, at, left, offset) : ::pwrite(transfer.file, at, left, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno;
    if (moved == 0) return EIO;
    done += static_cast<std::size_t>(moved);
  }
  return 0;
}

class ThreadIo final : public Io {
 public:
  explicit ThreadIo(int threads) : worker_(threads) {}

  void submit(Transfer transfer) override {
    worker_.submit([transfer = std::move(transfer)] {
      if (transfer.before) transfer.before();
      transfer.after(move_all(transfer));
    });
  }
  const char* name() const override { return "threads"; }

 private:
  Worker worker_;
};

}  // namespace

std::unique_ptr<Io> make_thread_io(int threads) { return std::make_unique<ThreadIo>(threads); }

std::unique_ptr<Io> make_io() {
  auto io = make_uring_io();
  return io != nullptr ? std::move(io) : make_thread_io(2);
}

}  // namespace braid::store
