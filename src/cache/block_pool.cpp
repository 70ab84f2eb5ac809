#include "cache/block_pool.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <numeric>

namespace braid::cache {

BlockPool::BlockPool(std::int32_t total, std::int32_t groups)
    : entries_(static_cast<std::size_t>(total) + 1), empty_(static_cast<std::size_t>(total)), held_(static_cast<std::size_t>(groups)) {
  std::iota(empty_.rbegin(), empty_.rend(), 0);  // the lowest block is on top
  entry(total).older = entry(total).newer = total;
}

std::optional<BlockId> BlockPool::allocate(std::int32_t group) {
  assert(static_cast<std::size_t>(group) < held_.size() && "a group that the pool does not have");
  BlockId block = 0;
  if (!empty_.empty()) {
    block = empty_.back();
    empty_.pop_back();
  } else if (cached_ > 0) {
    block = take_oldest();
    ++evictions_;
  } else {
    return std::nullopt;
  }
  entry(block).references = 1;
  entry(block).group = static_cast<std::uint8_t>(group);
  ++held_with(block);
  return block;
}

void BlockPool::share(BlockId block) {
  assert((references(block) > 0 || entry(block).kept) && "sharing an empty block");
  if (entry(block).references++ > 0) return;
  unlink(block);
  ++held_with(block);
}

void BlockPool::release(BlockId block) {
  assert(references(block) > 0 && "releasing a free block");
  if (--entry(block).references > 0) return;
  --held_with(block);
  if (entry(block).kept) {
    link_newest(block);
  } else {
    empty_.push_back(block);
  }
}

void BlockPool::keep(BlockId block) {
  assert(references(block) > 0 && "keeping a free block");
  assert(on_evict_ && "somebody must hear of evictions");
  entry(block).kept = true;
}

void BlockPool::forget(BlockId block) {
  Entry& forgotten = entry(block);
  if (!forgotten.kept) return;
  forgotten.kept = false;
  if (forgotten.references > 0) return;
  unlink(block);
  empty_.push_back(block);
}

void BlockPool::withdraw(std::int32_t count, std::vector<BlockId>& taken) {
  count = std::min(count, free());
  const auto from_empty = std::min(static_cast<std::ptrdiff_t>(count), std::ssize(empty_));
  const auto end = empty_.begin() + from_empty;  // the bottom of the stack has been empty for longest
  withdrawn_.insert(withdrawn_.end(), empty_.begin(), end);
  empty_.erase(empty_.begin(), end);
  for (auto left = count - static_cast<std::int32_t>(from_empty); left > 0; --left) {
    if (empty_.empty()) {
      withdrawn_.push_back(take_oldest());
    } else {  // it was forgotten with one that was taken
      withdrawn_.push_back(empty_.back());
      empty_.pop_back();
    }
  }
  taken.insert(taken.end(), withdrawn_.end() - count, withdrawn_.end());
}

void BlockPool::restore(std::int32_t count) {
  assert(count <= withdrawn() && "more than have been withdrawn");
  const auto begin = withdrawn_.end() - count;
  empty_.insert(empty_.begin(), begin, withdrawn_.end());
  withdrawn_.erase(begin, withdrawn_.end());
}

std::int32_t BlockPool::empty_cached() {
  const std::int32_t count = cached_;
  while (cached_ > 0) empty_.push_back(take_oldest());
  return count;
}

// Of the cached ones.
BlockId BlockPool::take_oldest() {
  const BlockId block = entry(total()).newer;
  unlink(block);
  entry(block).kept = false;
  on_evict_(block);
  return block;
}

std::int32_t BlockPool::references(BlockId block) const {
  assert(block >= 0 && block < total() && "no such block");
  return entries_[static_cast<std::size_t>(block)].references;
}

void BlockPool::link_newest(BlockId block) {
  const BlockId end = total();
  Entry& linked = entry(block);
  linked.newer = end;
  linked.older = entry(end).older;
  entry(linked.older).newer = block;
  entry(end).older = block;
  ++cached_;
}

void BlockPool::unlink(BlockId block) {
  const Entry& linked = entry(block);
  entry(linked.older).newer = linked.newer;
  entry(linked.newer).older = linked.older;
  --cached_;
}

}  // namespace braid::cache
