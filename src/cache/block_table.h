// The blocks of one sequence, of one group of layers, in the order of its positions.
#pragma once

#include "cache/block_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace braid::cache {

// Owns one reference to each of its blocks and gives them back at its end. Loop only; the pool outlives it.
class BlockTable {
 public:
  static constexpr BlockId kAbsent = -1;  // in the place of one that was given back early

  explicit BlockTable(BlockPool& pool, std::int32_t group = 0) : pool_(&pool), group_(group) {}
  BlockTable(BlockTable&& other) noexcept
      : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})), present_(std::exchange(other.present_, 0)), group_(other.group_) {}
  ~BlockTable() { clear(); }
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Appends blocks until there are `count`. Takes all that are missing or, when the pool has too few, none.
  bool grow_to(std::int32_t count) {
    if (count - size() > pool_->free()) return false;
    for (; size() < count; ++present_) blocks_.push_back(*pool_->allocate(group_));
    return true;
  }

  // Appends blocks that others hold or that are cached; kAbsent among them are places without one.
  void adopt(std::span<const BlockId> blocks) {
    for (const BlockId block : blocks) {
      if (block == kAbsent) continue;
      pool_->share(block);
      ++present_;
    }
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  }

  // Exchanges one for a block with the same contents.
  void replace(std::int32_t index, BlockId block) {
    BlockId& place = blocks_[static_cast<std::size_t>(index)];
    pool_->share(block);
    pool_->release(place);
    place = block;
  }

  // Gives back those of [begin, end) that are there; their places stay.
  void drop(std::int32_t begin, std::int32_t end) {
    for (std::int32_t index = begin; index < std::min(end, size()); ++index) {
      BlockId& place = blocks_[static_cast<std::size_t>(index)];
      if (place == kAbsent) continue;
      pool_->release(std::exchange(place, kAbsent));
      --present_;
    }
  }

  // The last one first, so that among cached blocks what continues a prefix is older than the prefix (see PrefixIndex).
  void clear() {
    for (; !blocks_.empty(); blocks_.pop_back())
      if (blocks_.back() != kAbsent) pool_->release(blocks_.back());
    present_ = 0;
  }

  BlockId operator[](std::int32_t index) const { return blocks_[static_cast<std::size_t>(index)]; }
  const BlockPool& pool() const { return *pool_; }
  std::span<const BlockId> all() const { return blocks_; }
  std::span<const BlockId> first(std::int32_t count) const { return std::span(blocks_).first(static_cast<std::size_t>(count)); }
  std::int32_t size() const { return static_cast<std::int32_t>(blocks_.size()); }  // places
  std::int32_t present() const { return present_; }                                // of these, blocks that are there

 private:
  BlockPool* pool_;
  std::vector<BlockId> blocks_;
  std::int32_t present_ = 0;
  std::int32_t group_;
};

}  // namespace braid::cache
