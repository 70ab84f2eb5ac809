// Checkpoints of recurrent states in the prefix index.
#include "cache/prefix_index.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace braid::cache {

bool PrefixIndex::put_state(BlockId node, std::int32_t offset, std::span<const BlockId> state) {
  assert(offset > 0 && !state.empty());
  if (std::cmp_greater(state.size(), most_state_blocks_)) return false;
  const std::uint64_t used = ++uses_;
  if (!hang(node, {offset, {state.begin(), state.end()}, used})) return false;
  by_use_.emplace(used, state.front());
  for (const BlockId block : state) pool_.keep(block);
  drop_unused_states();
  return true;
}

void PrefixIndex::bound_states(std::int32_t blocks) {
  most_state_blocks_ = blocks;
  drop_unused_states();
}

// Those that somebody holds as well: he keeps his blocks, which are nobody else's any more.
void PrefixIndex::drop_unused_states() {
  for (; state_blocks() > most_state_blocks_; ++states_dropped_) lose_state(by_use_.begin()->second);
}

void PrefixIndex::use(Checkpoint& checkpoint) {
  by_use_.erase(checkpoint.used);
  checkpoint.used = ++uses_;
  by_use_.emplace(checkpoint.used, checkpoint.state.front());
}

bool PrefixIndex::hang(BlockId node, Checkpoint checkpoint) {
  if (this->node(node).filled < checkpoint.offset) return false;
  std::vector<Checkpoint>& there = checkpoints_[node];
  const auto place = std::ranges::lower_bound(there, checkpoint.offset, {}, &Checkpoint::offset);
  if (place != there.end() && place->offset == checkpoint.offset) return false;
  for (const BlockId block : checkpoint.state) state_nodes_[block] = node;
  there.insert(place, std::move(checkpoint));
  return true;
}

PrefixIndex::StateHit PrefixIndex::last_state(const SequenceView& sequence, std::span<const BlockId> path) {
  const auto begin = path.size() * block_tokens_;
  StateHit hit;
  Checkpoint* best = nullptr;
  const auto look_at = [&](BlockId node, std::size_t first, std::int32_t most) {
    Checkpoint* const found = last_checkpoint(node, most);
    const std::int32_t tokens = found != nullptr ? static_cast<std::int32_t>(first) + found->offset : 0;
    if (tokens <= hit.tokens) return;
    hit = {tokens, found->state};
    best = found;
  };
  if (begin < sequence.tokens.size()) {
    const Part wanted = part(sequence, begin);
    for_beginnings(path.empty() ? kNoParent : path.back(), sequence.scope, wanted,
                   [&](BlockId node, std::int32_t common) { look_at(node, begin, common); });
  }
  for (std::size_t place = path.size(); hit.tokens == 0 && place-- > 0;)
    look_at(path[place], place * block_tokens_, static_cast<std::int32_t>(block_tokens_));
  if (best != nullptr) use(*best);
  return hit;
}

std::span<const BlockId> PrefixIndex::state_at(BlockId node, std::int32_t offset) const {
  const auto found = checkpoints_.find(node);
  if (found == checkpoints_.end()) return {};
  const auto there = std::ranges::find(found->second, offset, &Checkpoint::offset);
  return there != found->second.end() ? std::span<const BlockId>(there->state) : std::span<const BlockId>();
}

void PrefixIndex::announce_states(BlockId node) const {
  const auto found = checkpoints_.find(node);
  if (found == checkpoints_.end()) return;
  for (const Checkpoint& checkpoint : found->second) on_evict_(node, kState, checkpoint.offset);
}

// Of the node's first `most` tokens; null: none.
PrefixIndex::Checkpoint* PrefixIndex::last_checkpoint(BlockId node, std::int32_t most) {
  const auto found = checkpoints_.find(node);
  if (found == checkpoints_.end()) return nullptr;
  const auto behind = std::ranges::upper_bound(found->second, most, {}, &Checkpoint::offset);
  return behind != found->second.begin() ? &*std::prev(behind) : nullptr;
}

std::vector<PrefixIndex::Checkpoint> PrefixIndex::take_checkpoints(BlockId node) {
  if (checkpoints_.empty()) return {};
  const auto entry = checkpoints_.extract(node);
  return entry.empty() ? std::vector<Checkpoint>() : std::move(entry.mapped());
}

// A block that became full stays what it was, or another one stands for it. Of none they are forgotten.
void PrefixIndex::give_checkpoints(BlockId node, std::vector<Checkpoint> checkpoints) {
  for (const Checkpoint& checkpoint : checkpoints)
    if (node == kNone || !hang(node, checkpoint)) forget_state(checkpoint);
}

void PrefixIndex::forget_state(const Checkpoint& checkpoint) {
  by_use_.erase(checkpoint.used);
  for (const BlockId block : checkpoint.state) {
    state_nodes_.erase(block);
    pool_.forget(block);
  }
}

// With the other blocks of its state. False when it is a part of none.
bool PrefixIndex::lose_state(BlockId block) {
  const auto found = state_nodes_.find(block);
  if (found == state_nodes_.end()) return false;
  const auto there = checkpoints_.find(found->second);
  const auto lost = std::ranges::find_if(there->second, [&](const Checkpoint& one) { return std::ranges::count(one.state, block) > 0; });
  if (on_evict_) on_evict_(there->first, kState, lost->offset);
  const Checkpoint checkpoint = std::move(*lost);
  there->second.erase(lost);
  if (there->second.empty()) checkpoints_.erase(there);
  forget_state(checkpoint);
  return true;
}

}  // namespace braid::cache
