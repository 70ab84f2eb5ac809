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
  if (!hang(node, {offset, {state.begin(), state.end()}, used, {}})) return false;
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
  enter(node, checkpoint);
  there.insert(place, std::move(checkpoint));
  return true;
}

PrefixIndex::StateHit PrefixIndex::look_for_state(const SequenceView& sequence, std::span<const BlockId> path, bool is_used) {
  FoundCheckpoint best;
  std::size_t begin = 0;
  for (std::size_t place = path.size() + 1; best.checkpoint == nullptr && place-- > 0;) {
    begin = place * block_tokens_;
    if (begin == sequence.tokens.size()) continue;
    if (place < path.size()) best = checkpoint_of(path[place]);
    const std::int32_t least = best.checkpoint != nullptr ? best.checkpoint->offset : 0;
    const auto within = checkpoint_within(place > 0 ? path[place - 1] : kNoParent, sequence.scope, part(sequence, begin), least);
    if (within.checkpoint != nullptr) best = within;
  }
  if (best.checkpoint == nullptr) return {};
  if (is_used) use(*best.checkpoint);
  return {static_cast<std::int32_t>(begin) + best.checkpoint->offset, best.checkpoint->state, best.node};
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

// The last one of a node.
PrefixIndex::FoundCheckpoint PrefixIndex::checkpoint_of(BlockId node) {
  const auto found = checkpoints_.find(node);
  return found != checkpoints_.end() ? FoundCheckpoint{node, &found->second.back()} : FoundCheckpoint();
}

// The last one behind more than `least` of the wanted tokens, less than a block's worth, in whichever block after `parent`.
PrefixIndex::FoundCheckpoint PrefixIndex::checkpoint_within(BlockId parent, const Scope& scope, const Part& wanted, std::int32_t least) {
  if (states_below(parent) == 0) return {};
  const auto most = static_cast<std::int32_t>(std::min(wanted.tokens.size(), block_tokens_ - 1));
  for (std::int32_t offset = most; offset > least; --offset) {
    const Part same = beginning_of(wanted, offset);
    const auto [first, last] = within_.equal_range(key_after(parent, scope, same));
    for (auto at = first; at != last; ++at) {
      const BlockId node = at->second;
      if (this->node(node).parent != parent || (parent == kNoParent && scope_of(node) != scope)) continue;
      const Part known = part_of(node);
      if (common_length({{}, known.tokens, known.media}, {{}, same.tokens, same.media}) < offset) continue;
      const auto found = std::ranges::find(checkpoints_.at(node), offset, &Checkpoint::offset);
      if (found != checkpoints_.at(node).end()) return {node, &*found};
    }
  }
  return {};
}

// Valid until the next call, and as long as `part` is.
PrefixIndex::Part PrefixIndex::beginning_of(const Part& part, std::int32_t count) {
  beginning_media_.clear();
  append_media(part.media, 0, count, beginning_media_);
  return {part.tokens.first(static_cast<std::size_t>(count)), beginning_media_};
}

// Where checkpoint_within() finds it, if it is within the block.
void PrefixIndex::enter(BlockId node, Checkpoint& checkpoint) {
  if (std::cmp_equal(checkpoint.offset, block_tokens_)) return;
  const BlockId parent = this->node(node).parent;
  checkpoint.key = key_after(parent, scope_of(node), beginning_of(part_of(node), checkpoint.offset));
  within_.emplace(checkpoint.key, node);
  ++states_below(parent);
}

void PrefixIndex::strike(BlockId node, const Checkpoint& checkpoint) {
  if (std::cmp_equal(checkpoint.offset, block_tokens_)) return;
  const auto [first, last] = within_.equal_range(checkpoint.key);
  within_.erase(std::find_if(first, last, [node](const auto& entry) { return entry.second == node; }));
  --states_below(this->node(node).parent);
}

std::vector<PrefixIndex::Checkpoint> PrefixIndex::take_checkpoints(BlockId node) {
  if (checkpoints_.empty()) return {};
  const auto entry = checkpoints_.extract(node);
  if (entry.empty()) return {};
  for (const Checkpoint& checkpoint : entry.mapped()) strike(node, checkpoint);
  return std::move(entry.mapped());
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
  strike(there->first, *lost);
  const Checkpoint checkpoint = std::move(*lost);
  there->second.erase(lost);
  if (there->second.empty()) checkpoints_.erase(there);
  forget_state(checkpoint);
  return true;
}

}  // namespace braid::cache
