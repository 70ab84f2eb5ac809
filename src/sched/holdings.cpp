#include "sched/holdings.h"

namespace braid::sched {

bool Holdings::take(std::int32_t places) {
  if (missing(places) > first_.pool().free()) return false;
  for_each([&](cache::BlockTable& table, std::int32_t) { table.grow_to(places); });
  return true;
}

std::int32_t Holdings::to_start(std::int32_t group, std::int32_t places) const {
  if (!groups_->has_window(group)) return places;
  const cache::BlockTable& table = (*this)[group];
  return std::max(table.size(), std::min(places, table.size() + groups_->window_blocks(group) - table.present()));
}

std::int32_t Holdings::to_start(std::int32_t places) const {
  std::int32_t blocks = groups_->state_blocks();
  for (std::int32_t group = 0; group < groups_->count(); ++group) blocks += to_start(group, places);
  return blocks;
}

std::int32_t Holdings::missing_to_start(std::int32_t places) const {
  std::int32_t missing = to_start(places) - state_.size();
  for_each([&](const cache::BlockTable& table, std::int32_t) { missing -= table.size(); });
  return missing;
}

bool Holdings::start(std::int32_t places) {
  if (missing_to_start(places) > first_.pool().free()) return false;
  for_each([&](cache::BlockTable& table, std::int32_t group) { table.grow_to(to_start(group, places)); });
  return state_.grow_to(groups_->state_blocks());
}

// A sixteenth of the pool is left for those who cannot do without.
std::optional<cache::BlockTable> Holdings::spare_state(bool is_exchange) const {
  std::optional<cache::BlockTable> spare;
  if (pool_->free() - groups_->state_blocks() >= (is_exchange ? 0 : pool_->usable() / 16)) {
    spare.emplace(*pool_, groups_->count());
    spare->grow_to(groups_->state_blocks());
  }
  return spare;
}

void Holdings::drop_invisible(std::int32_t position, std::int32_t kept) {
  for_each([&](cache::BlockTable& table, std::int32_t group) {
    const auto invisible = groups_->invisible(group, position);
    table.drop(invisible.first, std::min(invisible.last, kept));
  });
}

void Holdings::extend(std::int32_t places) {
  bool is_left = true;
  for (std::int32_t next = this->places() + 1; next <= places && is_left; ++next)
    for_each([&](cache::BlockTable& table, std::int32_t) { is_left = is_left && (table.size() >= next || table.grow_to(next)); });
}

void Holdings::adopt(const cache::PrefixIndex& index, std::span<const cache::BlockId> path) {
  first_.adopt(path);
  for (std::size_t i = 0; i < others_.size(); ++i)
    for (const cache::BlockId node : path) {
      const cache::BlockId handle = index.handle(node, static_cast<std::int32_t>(i) + 1);
      others_[i].adopt({&handle, 1});
    }
}

// Where a block is missing that would be seen, the prefix ends at it.
std::int32_t Holdings::reach_of_others(const cache::PrefixIndex& index, std::span<const cache::BlockId> path) const {
  auto reach = static_cast<std::int32_t>(path.size());
  for (std::int32_t group = 1; group < groups_->count(); ++group) {
    const std::int32_t before = reach;
    for (std::int32_t place = reach; place-- > 0;) {
      const auto invisible = groups_->invisible(group, reach * groups_->block_tokens());
      if (place >= invisible.first && place < invisible.last) {
        place = invisible.first;  // the sinks are left
        continue;
      }
      if (index.handle(path[static_cast<std::size_t>(place)], group) == cache::PrefixIndex::kNoHandle) reach = place;
    }
    if (reach < before) group = 0;  // all others again, of the shorter one
  }
  return reach;
}

// Whoever holds a block of a shared beginning holds those before it, unless a window has passed them, so those that nobody else holds are
// at the end.
std::int32_t Holdings::own() const {
  const cache::BlockPool& pool = first_.pool();
  const auto is_own = [&](cache::BlockId block) { return block != cache::BlockTable::kAbsent && pool.references(block) == 1; };
  auto own = static_cast<std::int32_t>(std::ranges::count_if(state_.all(), is_own));
  for_each([&](const cache::BlockTable& table, std::int32_t group) {
    const auto blocks = table.all();
    if (groups_->has_window(group)) {
      own += static_cast<std::int32_t>(std::ranges::count_if(blocks, is_own));
    } else {
      const auto first = std::ranges::partition_point(blocks, [&](cache::BlockId block) { return pool.references(block) > 1; });
      own += static_cast<std::int32_t>(blocks.end() - first);
    }
  });
  return own;
}

}  // namespace braid::sched
