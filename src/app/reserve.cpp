#include "app/reserve.h"

namespace braid::app {

void Reserve::fill() {
  for (std::size_t before = kBlocks + 1; missing_ > 0 && before != missing_;) {
    before = missing_;
    set_one_aside();
  }
}

void* Reserve::allocate(std::size_t alignment, std::size_t bytes) {
  if (void* memory = allocate_(alignment, bytes)) {
    if (missing_.load(std::memory_order_relaxed) > 0) set_one_aside();
    return memory;
  }
  return take(alignment, bytes);
}

void* Reserve::take(std::size_t alignment, std::size_t bytes) {
  if (alignment > kAlignment) return nullptr;
  const std::lock_guard lock(mutex_);
  void** blocks = blocks_.data();
  for (std::size_t size = 0; size < kSizes.size(); blocks += kSizes[size++].count) {
    if (bytes > kSizes[size].bytes || counts_[size] == 0) continue;
    ++missing_;
    return blocks[--counts_[size]];
  }
  return nullptr;
}

// The smallest of those that are missing.
void Reserve::set_one_aside() {
  const std::lock_guard lock(mutex_);
  void** blocks = blocks_.data();
  for (std::size_t size = 0; size < kSizes.size(); blocks += kSizes[size++].count) {
    if (counts_[size] == kSizes[size].count) continue;
    void* block = allocate_(kAlignment, kSizes[size].bytes);
    if (block == nullptr) return;
    blocks[counts_[size]++] = block;
    --missing_;
    return;
  }
}

}  // namespace braid::app
