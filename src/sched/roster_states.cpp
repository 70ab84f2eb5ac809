// What the roster does with checkpoints of recurrent states.
#include "sched/roster.h"

#include <algorithm>
#include <utility>

namespace braid::sched {

// Cuts path_, what the index has of the sequence's beginning, to where a state is, too, and holds that state. One within a block needs
// a copy of the block's beginning. One that leaves no room for a state of the sequence's own beside it, in a pool that may still be shrinking,
// is of no use.
void Roster::reuse_state(Sequence& sequence, std::int32_t most) {
  RecurrentState& state = *sequence.state;
  state.kept.clear();
  state.source.clear();
  state.source_end = state.awaits_behind = 0;
  sequence.fork_source.clear();
  const std::int64_t needed = groups_.blocks_at_once(blocks_for(sequence.known())) + groups_.state_blocks() + groups_.count();
  if (needed > target_) return path_.clear();
  cache::SequenceView wanted = sequence.view().first(static_cast<std::size_t>(most));
  for (;;) {
    const auto [end, found, node] = prefix_index_->last_state(wanted, path_);
    const std::int32_t begin = end / block_tokens_ * block_tokens_;
    path_.resize(static_cast<std::size_t>(end / block_tokens_));
    const std::int32_t reach = sequence.blocks.reach(*prefix_index_, path_);
    if (std::cmp_less(reach, path_.size())) {
      path_.resize(static_cast<std::size_t>(reach));
      wanted = wanted.first(static_cast<std::size_t>(reach * block_tokens_));
      continue;
    }
    if (end > begin) {
      const cache::BlockId holder = holder_of(wanted.first(static_cast<std::size_t>(end)), node);
      if (holder == kNoNode) {
        wanted = wanted.first(static_cast<std::size_t>(begin));
        continue;
      }
      for (std::int32_t group = 0; group < groups_.count(); ++group) {
        const cache::BlockId source = prefix_index_->handle(holder, group);
        sequence.fork_source.adopt({&source, 1});
      }
    }
    state.source.adopt(found);
    state.source_end = end;
    return keep_earlier(sequence, end);
  }
}

// While it waits its blocks are taken from the end, and with the first of them the state that it begins with: then it goes on from one before.
// Where it is to hold two, the other one is that behind which it never has to go back.
void Roster::keep_earlier(Sequence& sequence, std::int32_t end) {
  const std::int32_t fits = sequence.state->surely_fits;
  while (end > std::max(fits, 1)) {
    cache::PrefixIndex::StateHit earlier;
    if (!sequence.state->kept.empty() && fits > 0) earlier = earlier_state(sequence, std::min(fits, end - 1));
    if (earlier.tokens == 0) earlier = earlier_state(sequence, end - 1);
    if (earlier.tokens == 0) return;
    end = earlier.tokens;
    cache::BlockTable checkpoint(pool_);
    checkpoint.adopt(earlier.state);
    if (!sequence.state->keep_earlier({end, std::move(checkpoint)}, static_cast<std::int32_t>(path_.size()) / 8)) return;
  }
}

cache::PrefixIndex::StateHit Roster::earlier_state(const Sequence& sequence, std::int32_t most) {
  const auto before = std::span(path_).first(std::min(path_.size(), static_cast<std::size_t>(most / block_tokens_)));
  return prefix_index_->unused_state(sequence.view().first(static_cast<std::size_t>(most)), before);
}

// One with a state that gives up its blocks holds what it can go on from all the same, until it is admitted or somebody before it takes it. With a
// disk tier that has all of it, and it is looked up anew.
void Roster::hold_beginning(Sequence& sequence, std::int32_t most) {
  if (sequence.state == nullptr || !prefix_index_ || restorer_ || sequence.computes_all() || most <= 0) return;
  sequence.state->surely_fits = surely_fits(sequence);
  reuse_prefix(sequence, most, false);
}

// Then it goes on from a checkpoint before that from which it was to, if there is one: at least twice as far back, so that of a long text there are
// few that it comes by, but from none before the last that surely fits.
void Roster::step_back(Sequence& sequence) {
  std::int32_t most = 0;
  if (sequence.state != nullptr) {
    const std::int32_t end = sequence.state->source_end;
    const std::int32_t fits = sequence.state->surely_fits;
    most = std::max(end - 1 - (sequence.known() - end), fits < end ? fits : 0);
  }
  drop_blocks(sequence);
  hold_beginning(sequence, most);
}

// Where the disk has a state that is further on, behind blocks of which it may have none because the pool has them, the sequence holds those
// instead. `in_pool`: what the index has of its beginning.
void Roster::await_state(Sequence& sequence, std::span<const cache::BlockId> in_pool) {
  RecurrentState& state = *sequence.state;
  if (in_pool.size() == path_.size()) return;
  if (sequence.restoration == nullptr && !std::exchange(state.has_asked_disk, true)) restorer_->prefetch(sequence);
  const Restoration* const found = sequence.restoration.get();
  if (found == nullptr || found->state_blocks == 0 || found->tokens <= state.source_end) return;
  const auto begin = static_cast<std::size_t>(found->begin);
  if (begin <= path_.size() || begin > in_pool.size()) return;
  state.source.clear();
  sequence.fork_source.clear();
  path_.assign(in_pool.begin(), in_pool.begin() + found->begin);
  state.awaits_behind = found->begin;
}

// A node after path_ with the blocks of all groups that hold how `beginning` ends. That of its checkpoint, if it can be: what is copied is
// released anew, so the state's node stays as long as the state is used. kNoNode: there is none.
cache::BlockId Roster::holder_of(const cache::SequenceView& beginning, cache::BlockId node) {
  if (prefix_index_->has_all_handles(node)) return node;
  const std::size_t begin = path_.size() * static_cast<std::size_t>(block_tokens_);
  const auto same = prefix_index_->common_beginning(path_.empty() ? kNoNode : path_.back(), beginning, begin);
  return std::cmp_equal(same.count, beginning.tokens.size() - begin) ? same.block : kNoNode;
}

// The block of the tree in which the first `end` positions end; `tail` is what stands there for the one that is not full, or kNoParent.
cache::BlockId Roster::node_of_end(const Sequence& sequence, std::int32_t end, cache::BlockId tail) const {
  const std::int32_t place = (end - 1) / block_tokens_;
  return place < sequence.progress.published() ? sequence.blocks[0][place] : place == sequence.progress.published() ? tail : kNoNode;
}

// A checkpoint after the first `end` positions, which end in that node.
void Roster::put_state(cache::BlockId node, std::int32_t end, const cache::BlockTable& state) {
  const std::int32_t offset = offset_of(end);
  if (prefix_index_->put_state(node, offset, state.all()) && write_through_ && restorer_) restorer_->tier().save_state(node, offset);
}

// Of checkpoints that may take no more memory: once a step, because all who run are looked at, and before blocks are given out.
void Roster::let_go_of_dropped() {
  if (std::exchange(let_go_of_, states_dropped()) == states_dropped()) return;
  const auto let_go = [this](Sequence& sequence) {
    std::erase_if(sequence.state->kept, [&](const auto& kept) { return !prefix_index_->is_of_state(kept.blocks[0]); });
  };
  for (auto& [rank, sequence] : batch_) let_go(sequence);
  for (auto& [rank, sequence] : outside_holders_) let_go(*sequence);
}

// Copies that are back become checkpoints. One that ends in the block that is not full yet waits for that, and goes if the block stays
// private.
void Roster::publish_states(Sequence& sequence, cache::BlockId tail) {
  auto& copies = sequence.state->copies;
  for (; !copies.empty() && copies.front().end <= sequence.progress.computed(); copies.pop_front()) {
    const auto& [end, blocks] = copies.front();
    const cache::BlockId node = node_of_end(sequence, end, tail);
    if (node == kNoNode && blocks_for(end) * block_tokens_ > sequence.progress.computed()) return;
    if (node == kNoNode) continue;
    put_state(node, end, blocks);
    cache::BlockTable checkpoint(pool_);
    checkpoint.adopt(prefix_index_->state_at(node, offset_of(end)));
    sequence.state->surely_fits = surely_fits(sequence);
    sequence.keep_checkpoint(end, std::move(checkpoint));
  }
}

// See RecurrentState. A checkpoint within a block takes as much as if it were at its end: the beginning of that is copied.
std::int32_t Roster::surely_fits(const Sequence& sequence) const {
  const std::int64_t left = target_ - (most_of_batch_ - (runs(sequence) ? most_blocks(sequence) : 0));
  const std::int64_t places = left > groups_.state_blocks() ? groups_.most_places(left) : 0;
  return static_cast<std::int32_t>(std::min<std::int64_t>(places * block_tokens_, sequence.most_positions()));
}

// Until `wanted` blocks are free: takes those of checkpoints that the batch keeps and has to spare, from the first in rank on, who is preempted
// last; never from `victim`, who will go on from them.
void Roster::reclaim_checkpoints(std::int32_t wanted, const Sequence* victim) {
  for (auto at = batch_.begin(); groups_.has_states() && pool_.free() < wanted && at != batch_.end(); ++at)
    if (&at->second != victim && !at->second.is_leaving()) reclaim_checkpoints(wanted, at->second, at == batch_.begin());
}

// With `all` also the one that surely fits.
void Roster::reclaim_checkpoints(std::int32_t wanted, Sequence& sequence, bool all) {
  if (sequence.state == nullptr) return;
  RecurrentState& state = *sequence.state;
  while (pool_.free() < wanted && !state.kept.empty() && (all || state.has_to_spare()))
    state.kept.erase(state.least_useful(sequence.progress.least()));
}

// What lies at the end of all that was computed becomes one, too, before its blocks go.
void Roster::give_up_state(Sequence& sequence, cache::BlockId tail) {
  const std::int32_t end = sequence.progress.computed();
  if (prefix_index_ && !kv_verify_ && sequence.state->stands_for(end))
    if (const cache::BlockId node = node_of_end(sequence, end, tail); node != kNoNode) put_state(node, end, sequence.blocks.state());
}

}  // namespace braid::sched
