// What DiskTier asks a store that others write to, before it looks for what it can restore.
#include "sched/disk_tier.h"

#include <algorithm>
#include <utility>

namespace braid::sched {
namespace {

// Keys that are asked about at once, and how often for one sequence: with recurrent layers the second question is where states are, in what
// the first one has found, and the others go further back.
constexpr std::size_t kMostAsked = 1024;
constexpr std::int32_t kMostRounds = 4;

}  // namespace

std::shared_ptr<Lookup> DiskTier::look_up(const cache::SequenceView& sequence, std::int32_t have, const Lookup* before) {
  const std::int32_t round = before != nullptr ? before->round + 1 : 1;
  if (round > kMostRounds) return nullptr;
  std::vector<cache::PrefixKey> keys;
  index_.keys(sequence, keys);
  std::vector<cache::PrefixKey> asked;
  std::size_t block = static_cast<std::size_t>(have) / block_tokens_;
  while (block < keys.size() && asked.size() < kMostAsked && ask_for(keys[block], 0, groups_, asked)) ++block;
  if (asked.empty() && state_blocks_ > 0) {
    keys.resize(std::min(block, keys.size()));
    ask_for_states(sequence, have, keys, asked);
  }
  if (asked.empty()) return nullptr;
  auto lookup = std::make_shared<Lookup>(Lookup{.round = round});
  store_.look_up(std::move(asked), [this, weak = std::weak_ptr(lookup)] {
    if (const auto alive = weak.lock()) alive->is_answered = true;
    on_progress_();
  });
  return lookup;
}

// Adds to `asked` those of these pieces of which nothing is known. False: one of them is not there.
bool DiskTier::ask_for(const cache::PrefixKey& key, std::int32_t first, std::int32_t count, std::vector<cache::PrefixKey>& asked) const {
  for (std::int32_t piece = first; piece < first + count; ++piece) {
    const cache::PrefixKey own = piece_key(key, piece);
    if (!store_.knows(own)) {
      asked.push_back(own);
    } else if (!store_.contains(own)) {
      return false;
    }
  }
  return true;
}

// In the order in which find_state() looks for them, up to the first of which it is known that it is there.
void DiskTier::ask_for_states(const cache::SequenceView& sequence, std::int32_t have, std::vector<cache::PrefixKey>& keys,
                              std::vector<cache::PrefixKey>& asked) const {
  const auto least = static_cast<std::size_t>(have);
  // True: it is all there. Of most ends there is no state, so of each one part is asked for first.
  const auto ask_end = [&](const cache::PrefixKey& key, bool is_within) {
    if (!store_.knows(piece_key(key, groups_))) {
      asked.push_back(piece_key(key, groups_));
      return false;
    }
    const std::size_t before = asked.size();
    return ask_for(key, groups_, state_blocks_, asked) && (!is_within || ask_for(key, 0, groups_, asked)) && asked.size() == before;
  };
  for (; asked.size() < kMostAsked; keys.pop_back()) {
    const std::size_t begin = keys.size() * block_tokens_;
    for (std::size_t end = std::min(begin + block_tokens_ - 1, sequence.tokens.size()); end > std::max(begin, least); --end) {
      const cache::PrefixKey key = index_.next_key(keys.empty() ? cache::PrefixKey() : keys.back(), sequence.first(end), begin);
      if (ask_end(key, true)) return;
    }
    if (begin <= least || ask_end(keys.back(), false)) return;
  }
}

}  // namespace braid::sched
