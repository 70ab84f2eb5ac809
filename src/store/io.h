// Reads and writes of whole byte ranges that nobody waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace braid::store {

// The bytes belong to the transfer until `after` is called or the Io is gone, the file stays open as long.
struct Transfer {
  enum class Kind { kRead, kWrite };
  Kind kind = Kind::kRead;
  int file = -1;
  std::span<std::byte> bytes;
  std::uint64_t offset = 0;
  std::function<void()> before;          // on one of the Io's threads, before the first byte moves; may be empty
  std::function<void(int error)> after;  // likewise, once at the end: 0, or an errno; a read beyond the end of the file is EIO
};

// Transfers overlap and end in any order. submit() never waits for the disk. Destroying it waits for the transfers under way and drops
// those not begun, without calling them.
class Io {
 public:
  virtual ~Io() = default;
  virtual void submit(Transfer transfer) = 0;
  virtual const char* name() const = 0;
};

// One thread over io_uring; null where the kernel does not let us (old, or forbidden by seccomp or sysctl).
std::unique_ptr<Io> make_uring_io();
std::unique_ptr<Io> make_thread_io(int threads);

// io_uring if possible, else two threads.
std::unique_ptr<Io> make_io();

}  // namespace braid::store
