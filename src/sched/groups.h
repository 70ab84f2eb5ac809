// Layers that see alike form a group, and each group has blocks of its own for the positions of a sequence.
#pragma once

#include "cache/prefix_index.h"
#include "step/visibility.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::sched {

// Blocks that a sequence needs at once however long it is: what a token sees, and the next block. 0 without a window.
std::int32_t blocks_in_window(const step::Visibility& visibility, std::int32_t block_tokens);

// Those of a model, those that see everything first, and what its recurrent layers have instead: one state. Immutable.
class Groups {
 public:
  // `state_blocks`: of a sequence's recurrent state, however long it is.
  Groups(std::span<const step::Visibility> visible, std::int32_t block_tokens, std::int32_t state_blocks = 0);

  std::int32_t count() const { return static_cast<std::int32_t>(visible_.size()); }
  std::int32_t block_tokens() const { return block_tokens_; }
  std::int32_t state_blocks() const { return state_blocks_; }
  bool has_states() const { return state_blocks_ > 0; }
  const step::Visibility& visibility(std::int32_t group) const { return visible_[static_cast<std::size_t>(group)]; }
  bool has_window(std::int32_t group) const { return visibility(group).window > 0; }
  // See blocks_in_window().
  std::int32_t window_blocks(std::int32_t group) const { return window_blocks_[static_cast<std::size_t>(group)]; }
  // Whether some group has a window, or all have: then a sequence may be longer than the pool.
  bool any_window() const { return full_ < count(); }
  bool all_windows() const { return full_ == 0; }

  // Blocks [first, last) of this group are seen neither by the token at `position` nor by later ones.
  step::Visibility::Blocks invisible(std::int32_t group, std::int32_t position) const {
    return visibility(group).invisible(position, block_tokens_);
  }

  // Blocks that a sequence of so many places holds at once, of all groups and its state, and the most places that so many blocks are enough for.
  std::int64_t blocks_at_once(std::int64_t places) const;
  std::int64_t most_places(std::int64_t blocks) const;

  // A hit needs what full groups have of all positions.
  cache::PrefixIndex::Groups of_index() const { return {count(), full_ > 0 ? full_ : 1}; }

 private:
  std::vector<step::Visibility> visible_;
  std::int32_t block_tokens_;
  std::vector<std::int32_t> window_blocks_;
  std::int32_t full_ = 0;  // groups without a window
  std::int32_t state_blocks_;
};

}  // namespace braid::sched
