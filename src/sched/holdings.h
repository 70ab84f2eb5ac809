// The blocks of one sequence: for each group of layers those of its positions, and those of its recurrent state.
#pragma once

#include "cache/block_table.h"
#include "cache/prefix_index.h"
#include "sched/groups.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace braid::sched {

// A block of the first group is a node of the prefix index (PrefixIndex); most models have no other group. Loop only; pool and groups
// outlive it.
class Holdings {
 public:
  Holdings(cache::BlockPool& pool, const Groups& groups) : pool_(&pool), groups_(&groups), first_(pool), state_(pool, groups.count()) {
    for (std::int32_t group = 1; group < groups.count(); ++group) others_.emplace_back(pool, group);
  }

  const cache::BlockTable& operator[](std::int32_t group) const {
    return group == 0 ? first_ : others_[static_cast<std::size_t>(group - 1)];
  }
  cache::BlockTable& operator[](std::int32_t group) { return group == 0 ? first_ : others_[static_cast<std::size_t>(group - 1)]; }

  // Blocks' worth of positions for which every group has or had a block.
  std::int32_t places() const {
    std::int32_t places = first_.size();
    for (const cache::BlockTable& table : others_) places = std::min(places, table.size());
    return places;
  }
  bool empty() const { return first_.size() == 0; }
  std::int32_t present() const {
    std::int32_t present = first_.present();
    for (const cache::BlockTable& table : others_) present += table.present();
    return present + state_.present();
  }
  // All of its state's, from start() on.
  const cache::BlockTable& state() const { return state_; }
  // As many blocks for a copy of it, where they are to spare, or in exchange for those of another one.
  std::optional<cache::BlockTable> spare_state(bool is_exchange = false) const;
  // What grow_to() would take.
  std::int32_t missing(std::int32_t places) const {
    std::int32_t missing = std::max(0, places - first_.size());
    for (const cache::BlockTable& table : others_) missing += std::max(0, places - table.size());
    return missing;
  }
  // Takes blocks of all groups until there are so many places, or none when the pool has too few.
  bool grow_to(std::int32_t places) { return (others_.empty() && places <= first_.size()) || take(places); }

  // Blocks of a group that a sequence of so many places starts with: with a window what is seen at once, of which it may hold a part; a
  // long prefill takes the others as it goes (BatchPlanner).
  std::int32_t to_start(std::int32_t group, std::int32_t places) const;
  // The same of all groups and the state, and what of it is missing. start() takes that, or nothing.
  std::int32_t to_start(std::int32_t places) const;
  std::int32_t missing_to_start(std::int32_t places) const;
  bool start(std::int32_t places);

  // Gives back what no token from `position` on sees, but nothing of `kept` blocks and later.
  void drop_invisible(std::int32_t position, std::int32_t kept);
  // Takes new ones, place by place, as far as there are any, until there are so many places.
  void extend(std::int32_t places);

  // Of a path that the index has found: all that lies in its nodes of these, in every group.
  void adopt(const cache::PrefixIndex& index, std::span<const cache::BlockId> path);
  // The leading blocks of such a path with which a sequence can go on: behind them each group has what it sees.
  std::int32_t reach(const cache::PrefixIndex& index, std::span<const cache::BlockId> path) const {
    return others_.empty() ? static_cast<std::int32_t>(path.size()) : reach_of_others(index, path);
  }

  // Blocks that come free with it: held by nobody else.
  std::int32_t own() const;

  // What continues a prefix before the prefix, in all groups; then the state, without which the end of these is of less use.
  void clear() {
    for (std::int32_t place = others_.empty() ? 0 : first_.size(); place-- > 0;)
      for_each([place](cache::BlockTable& table, std::int32_t) { table.drop(place, place + 1); });
    for_each([](cache::BlockTable& table, std::int32_t) { table.clear(); });
    state_.clear();
  }

  template <class Use>  // (table, group)
  void for_each(Use use) {
    use(first_, 0);
    for (std::size_t i = 0; i < others_.size(); ++i) use(others_[i], static_cast<std::int32_t>(i) + 1);
  }
  template <class Use>
  void for_each(Use use) const {
    use(first_, 0);
    for (std::size_t i = 0; i < others_.size(); ++i) use(others_[i], static_cast<std::int32_t>(i) + 1);
  }

 private:
  bool take(std::int32_t places);
  std::int32_t reach_of_others(const cache::PrefixIndex& index, std::span<const cache::BlockId> path) const;

  cache::BlockPool* pool_;
  const Groups* groups_;
  cache::BlockTable first_;
  std::vector<cache::BlockTable> others_;
  cache::BlockTable state_;
};

}  // namespace braid::sched
