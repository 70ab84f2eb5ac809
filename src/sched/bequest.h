// Gives a store that others read what only this server's RAM has, before it goes.
#pragma once

#include "cache/prefix_index.h"
#include "sched/disk_tier.h"

#include <cstddef>
#include <vector>

namespace braid::sched {

// Loop only; index and tier outlive it. Nothing is added to the index meanwhile.
class Bequest {
 public:
  Bequest(const cache::PrefixIndex& index, DiskTier& tier, std::int32_t groups, std::int32_t state_blocks);

  // The next plan saves as much of it as there are buffers for.
  void go_on();
  bool has_ended() const { return next_ == places_.size(); }

 private:
  const cache::PrefixIndex& index_;
  DiskTier& tier_;
  const std::int32_t groups_;
  const std::size_t most_pieces_;  // of a place
  const std::vector<cache::PrefixIndex::Place> places_;
  std::size_t next_ = 0;
};

}  // namespace braid::sched
