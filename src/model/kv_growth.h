// Makes the pages of a KV arena present after the start, so that the start need not wait for gigabytes that nobody uses yet.
#pragma once

#include "model/kv_arena.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

namespace braid::model {

// A thread of little weight touches a piece at a time, from the beginning of the arena on; blocks are handed out in that order.
class KvGrowth {
 public:
  // Of the first `blocks`, whose memory has been promised already. Returns when the first pieces are present. The arena outlives it.
  KvGrowth(const KvArena& arena, std::int32_t blocks);
  ~KvGrowth();  // stops where it is, within a piece
  KvGrowth(const KvGrowth&) = delete;
  KvGrowth& operator=(const KvGrowth&) = delete;

  // Nothing is made present any more but by who writes to it. Strand.
  void stop();

  // Before a step that uses blocks up to the `blocks`th: what is not present of them yet, it makes so. Strand.
  void reach(std::int32_t blocks);

  std::size_t present() const { return present_.load(std::memory_order_acquire); }  // bytes. Any thread.
  std::size_t wanted() const { return wanted_; }                                    // bytes
  bool is_over() const { return is_stopped() || present() == wanted_; }
  bool is_stopped() const { return is_stopped_.load(std::memory_order_acquire); }  // any thread

 private:
  void touch_piece();

  const KvArena& arena_;
  const std::size_t wanted_;
  std::mutex mutex_;  // of who touches: the thread, piece by piece, or a step that has caught up with it
  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> is_awaited_{false};  // by a step
  std::atomic<std::size_t> present_{0};
  std::jthread thread_;
};

}  // namespace braid::model
