// Checkpoints of recurrent states in the prefix index.
#include "cache/prefix_index.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace braid::cache {

bool PrefixIndex::put_state(BlockId node, std::int32_t offset, std::span<const BlockId> state) {
  assert(offset > 0 && !state.empty());
  if (!hang(node, offset, state)) return false;
  for (const BlockId block : state) pool_.keep(block);
  return true;
}

bool PrefixIndex::hang(BlockId node, std::int32_t offset, std::span<const BlockId> state) {
  if (this->node(node).filled < offset) return false;
  std::vector<Checkpoint>& there = checkpoints_[node];
  const auto place = std::ranges::lower_bound(there, offset, {}, &Checkpoint::offset);
  if (place != there.end() && place->offset == offset) return false;
  there.insert(place, {offset, {state.begin(), state.end()}});
  for (const BlockId block : state) state_nodes_[block] = node;
  return true;
}

PrefixIndex::StateHit PrefixIndex::last_state(const SequenceView& sequence, std::span<const BlockId> path) {
  const auto begin = path.size() * block_tokens_;
  StateHit hit;
  const auto look_at = [&](BlockId node, std::size_t first, std::int32_t most) {
    const Checkpoint* const found = last_checkpoint(node, most);
    const std::int32_t tokens = found != nullptr ? static_cast<std::int32_t>(first) + found->offset : 0;
    if (tokens > hit.tokens) hit = {tokens, found->state};
  };
  if (begin < sequence.tokens.size()) {
    const Part wanted = part(sequence, begin);
    for_beginnings(path.empty() ? kNoParent : path.back(), sequence.scope, wanted,
                   [&](BlockId node, std::int32_t common) { look_at(node, begin, common); });
  }
  for (std::size_t place = path.size(); hit.tokens == 0 && place-- > 0;)
    look_at(path[place], place * block_tokens_, static_cast<std::int32_t>(block_tokens_));
  return hit;
}

std::span<const BlockId> PrefixIndex::state_at_end(BlockId node) const {
  const auto found = is_full(node) ? checkpoints_.find(node) : checkpoints_.end();
  if (found == checkpoints_.end() || std::cmp_less(found->second.back().offset, block_tokens_)) return {};
  return found->second.back().state;
}

// Of the node's first `most` tokens; null: none.
const PrefixIndex::Checkpoint* PrefixIndex::last_checkpoint(BlockId node, std::int32_t most) const {
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
    if (node == kNone || !hang(node, checkpoint.offset, checkpoint.state)) forget_state(checkpoint);
}

void PrefixIndex::forget_state(const Checkpoint& checkpoint) {
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
  if (on_evict_ && std::ranges::count(state_at_end(there->first), block) > 0) on_evict_(there->first, kState);
  const auto lost = std::ranges::find_if(there->second, [&](const Checkpoint& one) { return std::ranges::count(one.state, block) > 0; });
  const Checkpoint checkpoint = std::move(*lost);
  there->second.erase(lost);
  if (there->second.empty()) checkpoints_.erase(there);
  forget_state(checkpoint);
  return true;
}

}  // namespace braid::cache
