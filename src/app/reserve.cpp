#include "app/reserve.h"

namespace braid::app {

void Reserve::fill() {
  for (std::size_t before = kBlocks; count_ < kBlocks && before != count_;) {
    before = count_;
    set_one_aside();
  }
}

void* Reserve::allocate(std::size_t alignment, std::size_t bytes) {
  if (void* memory = allocate_(alignment, bytes)) {
    if (count_.load(std::memory_order_relaxed) < kBlocks) set_one_aside();
    return memory;
  }
  if (bytes > kBlockBytes || alignment > kAlignment) return nullptr;
  const std::lock_guard lock(mutex_);
  return count_ > 0 ? blocks_[--count_] : nullptr;
}

void Reserve::set_one_aside() {
  const std::lock_guard lock(mutex_);
  if (count_ == kBlocks) return;
  if (void* block = allocate_(kAlignment, kBlockBytes)) blocks_[count_++] = block;
}

}  // namespace braid::app
