// Memory for those who cannot be told that there is none.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace braid::app {

// Asio takes its operations and coroutine frames from std::aligned_alloc (asio/detail/memory.hpp of Boost 1.81). An operation that finds
// no memory throws where nobody can catch it: out of the wait that begins, past the coroutine that waits. So while memory is exhausted,
// small blocks are handed out that were set aside before; what is given back to the allocator afterwards makes up for them. Whatever else
// needs memory is told that there is none, and its request fails. Any thread.
class Reserve {
 public:
  static constexpr std::size_t kBlockBytes = 512;
  static constexpr std::size_t kBlocks = 4096;
  static constexpr std::size_t kAlignment = 64;

  // As std::aligned_alloc; null when there is no memory.
  using Allocate = void* (*)(std::size_t alignment, std::size_t bytes);

  constexpr explicit Reserve(Allocate source) : allocate_(source) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  void fill();  // as far as there is memory

  // From the allocator, or else a block that was set aside. Null when it is too large for that, or none is left.
  void* allocate(std::size_t alignment, std::size_t bytes);

 private:
  void set_one_aside();

  Allocate allocate_;
  std::mutex mutex_;  // while memory is exhausted, and shortly after
  std::atomic<std::size_t> count_{0};
  std::array<void*, kBlocks> blocks_{};  // [count_] are there; never freed
};

}  // namespace braid::app
