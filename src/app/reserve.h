// Memory for those who cannot be told that there is none.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace braid::app {

// Asio takes its operations and coroutine frames from std::aligned_alloc (asio/detail/memory.hpp of Boost 1.81). An operation that finds
// no memory throws where nobody can catch it: out of the wait that begins, past the coroutine that waits. Nor can the scheduler undo half a
// step's results (braid/last_memory.h). So while memory is exhausted, these get blocks that were set aside before; what is given back to the
// allocator afterwards makes up for them. Whatever else needs memory is told that there is none, and its request fails. Any thread.
class Reserve {
 public:
  struct Size {
    std::size_t bytes;
    std::size_t count;
  };
  // Operations, frames and events; what a row of each sequence of a batch has when it grows; the tokens of long contexts.
  static constexpr std::array<Size, 3> kSizes{{{512, 4096}, {8 << 10, 256}, {512 << 10, 8}}};
  static constexpr std::size_t kBlocks = kSizes[0].count + kSizes[1].count + kSizes[2].count;
  static constexpr std::size_t kAlignment = 64;

  // As std::aligned_alloc; null when there is no memory.
  using Allocate = void* (*)(std::size_t alignment, std::size_t bytes);

  constexpr explicit Reserve(Allocate source) : allocate_(source) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  void fill();  // as far as there is memory

  // From the allocator, or else a block that was set aside. Null when it is too large for that, or none is left.
  void* allocate(std::size_t alignment, std::size_t bytes);

  // A block that was set aside, for who has asked the allocator already.
  void* take(std::size_t alignment, std::size_t bytes);

 private:
  void set_one_aside();

  Allocate allocate_;
  std::mutex mutex_;                           // while memory is exhausted, and shortly after
  std::atomic<std::size_t> missing_{kBlocks};  // of all sizes
  std::array<std::size_t, kSizes.size()> counts_{};
  std::array<void*, kBlocks> blocks_{};  // of each size its [counts_] first are there; never freed
};

}  // namespace braid::app
