// Who gives up blocks when they run short.
#include "sched/roster.h"
#include "sched/ticket.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>
#include <vector>

namespace braid::sched {

namespace {

// The blocks of some sequences, one entry for each holder, of which those come free together that nobody else holds.
class Surrender {
 public:
  // `holders`: none of any block, and left so.
  Surrender(const cache::BlockPool& pool, std::vector<std::int32_t>& holders) : pool_(pool), holders_(holders) {
    holders_.resize(static_cast<std::size_t>(pool.total()));
  }
  Surrender(const Surrender&) = delete;
  Surrender& operator=(const Surrender&) = delete;
  ~Surrender() {
    for (const cache::BlockId block : given_) holders_[static_cast<std::size_t>(block)] = 0;
  }

  // With `all` also those of the one that surely fits.
  void add_kept(const Sequence& sequence, bool all) {
    const RecurrentState::Checkpoint* const fitting = all ? nullptr : sequence.state->last_that_fits();
    for (const RecurrentState::Checkpoint& checkpoint : sequence.state->kept)
      if (&checkpoint != fitting) add(checkpoint.blocks);
  }

  void add(const Sequence& sequence) {
    sequence.blocks.for_each([this](const cache::BlockTable& table, std::int32_t) { add(table); });
    add(sequence.fork_source);
    if (sequence.state == nullptr) return;
    add(sequence.blocks.state());
    add(sequence.state->source);
    for (const RecurrentState::Copy& copy : sequence.state->copies) add(copy.blocks);
    add_kept(sequence, true);
  }

  std::int32_t freed() const { return freed_; }

 private:
  void add(const cache::BlockTable& table) {
    for (const cache::BlockId block : table.all()) {
      if (block == cache::BlockTable::kAbsent) continue;
      given_.push_back(block);
      if (++holders_[static_cast<std::size_t>(block)] == pool_.references(block)) ++freed_;
    }
  }

  const cache::BlockPool& pool_;
  std::vector<std::int32_t>& holders_;
  std::vector<cache::BlockId> given_;
  std::int32_t freed_ = 0;
};

}  // namespace

std::int32_t Roster::make_room() {
  let_go_of_dropped();
  if (pool_.free() >= static_cast<std::int32_t>(batch_.size()) * groups_.count()) return 0;
  // A full stream does not decode, so it wants no block: a slow reader costs nobody else theirs.
  const auto wanted = [this](const Sequence& sequence) {
    const bool fills = sequence.phase == SequencePhase::kPrefill || sequence.phase == SequencePhase::kRestoring;
    const bool goes_on = fills || (sequence.may_decode() && stream_room(sequence) > 0);
    return goes_on && sequence.needs_block(block_tokens_) ? sequence.blocks.missing(sequence.blocks.places() + 1) : 0;
  };
  if (groups_.any_window()) {
    // Its last slice may have been longer than its window, and hold what nobody sees any more.
    for (auto& [rank, sequence] : batch_)
      if (wanted(sequence) > 0) drop_invisible(sequence, groups_);
  }
  std::int32_t needed = 0;
  for (const auto& [rank, sequence] : batch_) needed += wanted(sequence);
  std::int32_t preempted = 0;
  while (pool_.free() < needed - promised()) {
    Sequence* victim = next_victim();
    if (reclaim(needed - promised(), nullptr, victim) || victim == nullptr) break;
    needed -= wanted(*victim);
    preempt(*victim);
    ++preempted;
  }
  return preempted;
}

std::int32_t Roster::resize(std::int32_t blocks) {
  std::int64_t least = 1;
  for (const SequenceMap* map : all()) {
    for (const auto& [rank, sequence] : *map) {
      if (sequence.phase == SequencePhase::kDone) continue;
      const std::int32_t longest = sequence.prompt_tokens + std::max(sequence.stop.max_tokens, 1);
      least = std::max(least,
                       groups_.blocks_at_once(blocks_for(longest)) + groups_.state_blocks() + (groups_.has_states() ? groups_.count() : 0));
    }
  }
  target_ = static_cast<std::int32_t>(std::clamp<std::int64_t>(blocks, std::min<std::int64_t>(least, pool_.total()), pool_.total()));
  if (target_ > pool_.usable()) pool_.restore(target_ - pool_.usable());
  return target_;
}

std::int32_t Roster::shrink(std::vector<std::int32_t>& given_back) {
  const std::int32_t excess = pool_.usable() - target_;
  if (excess <= 0) return 0;
  let_go_of_dropped();
  std::int32_t preempted = 0;
  while (pool_.free() < excess - promised()) {
    Sequence* victim = next_victim();
    if (reclaim(excess - promised(), nullptr, victim) || victim == nullptr) break;
    preempt(*victim);
    ++preempted;
  }
  pool_.withdraw(excess, given_back);
  return preempted;
}

bool Roster::extend_prefills() {
  if (!groups_.any_window()) return true;
  bool all_extended = true;
  for (auto& [rank, sequence] : batch_) {
    const bool fills = sequence.phase == SequencePhase::kPrefill || sequence.phase == SequencePhase::kRestoring;
    if (!fills || !sequence.needs_block(block_tokens_)) continue;
    move_window(sequence, groups_, sequence.blocks.places() + 1);
    all_extended = all_extended && !sequence.needs_block(block_tokens_);
  }
  return all_extended;
}

// Blocks that come free when those who leave have come back.
std::int32_t Roster::promised() const {
  Surrender surrender(pool_, holders_);
  for (const auto& [rank, sequence] : batch_)
    if (sequence.is_leaving()) surrender.add(sequence);
  return surrender.freed();
}

// Whether reclaim() can get so many blocks for `taker`. There may be thousands outside the batch, and it looks at no more of them than it needs.
bool Roster::can_reclaim(std::int32_t count, const Sequence& taker, const Sequence* victim) const {
  Surrender surrender(pool_, holders_);
  for (auto at = batch_.begin(); groups_.has_states() && at != batch_.end(); ++at)
    if (&at->second != victim && !at->second.is_leaving()) surrender.add_kept(at->second, at == batch_.begin());
  if (gives_checkpoints(taker)) surrender.add_kept(taker, true);
  for (auto at = outside_holders_.begin(); surrender.freed() < count && at != outside_holders_.end(); ++at)
    if (at->second != &taker) surrender.add(*at->second);
  return surrender.freed() >= count;
}

// Null when only the first is left: it goes on with what others give back.
Sequence* Roster::next_victim() {
  const auto is_active = [](const auto& entry) { return entry.second.active(); };
  auto at = std::ranges::find_if(batch_, is_active);
  Sequence* victim = nullptr;
  while (at != batch_.end() && ++at != batch_.end())
    if (Sequence& sequence = at->second; sequence.active() && (victim == nullptr || yields_before(sequence, *victim))) victim = &sequence;
  return victim;
}

// Between equals the later in rank: the first argument.
bool Roster::yields_before(const Sequence& one, const Sequence& other) const {
  if (one.request->priority != other.request->priority) return one.request->priority > other.request->priority;
  return loss_per_block(one) <= loss_per_block(other);
}

// Positions to be computed again for each block that comes free. What others hold as well is neither freed nor lost.
double Roster::loss_per_block(const Sequence& sequence) const {
  const std::int32_t freed = sequence.blocks.own();
  if (freed == 0) return std::numeric_limits<double>::infinity();
  const std::int32_t kept = groups_.any_window() ? 0 : (sequence.blocks.present() - freed) / groups_.count() * block_tokens_;
  return static_cast<double>(sequence.progress.least() - kept) / freed;
}

// Whoever has been preempted would be again, and have nothing to go on from then; but when nobody runs, nobody else gives up anything.
bool Roster::gives_checkpoints(const Sequence& taker) const { return groups_.has_states() && (taker.generated() == 0 || batch_.empty()); }

// True once `wanted` blocks are free, as far as it needs after taking those of checkpoints that are kept in case somebody is preempted, but
// not `victim`'s, who is; then `taker`'s, if it gives them; then what is held outside the batch, but what `taker` begins with, from the last in
// rank on, and from the end of each.
bool Roster::reclaim(std::int32_t wanted, Sequence* taker, const Sequence* victim) {
  reclaim_checkpoints(wanted, victim);
  if (taker != nullptr && gives_checkpoints(*taker)) reclaim_checkpoints(wanted, *taker, true);
  for (auto at = outside_holders_.end(); pool_.free() < wanted && at != outside_holders_.begin();) {
    Sequence& sequence = *(--at)->second;
    if (&sequence == taker) continue;
    ++at;  // stays valid when it goes
    if (sequence.phase == SequencePhase::kStalled) {
      park(sequence);
    } else {
      step_back(sequence);
    }
  }
  return pool_.free() >= wanted;
}

void Roster::drop_blocks(Sequence& sequence) {
  if (sequence.home != &batch_) set_outside_holder(sequence, false);
  const cache::BlockId tail = publish_tail(sequence);
  if (sequence.state != nullptr) give_up_state(sequence, tail);
  sequence.fork_source.clear();
  sequence.blocks.clear();
  if (sequence.state != nullptr) sequence.state->clear();
  sequence.progress.clear();
}

void Roster::preempt(Sequence& sequence) {
  assert(runs(sequence));
  most_of_batch_ -= most_blocks(sequence);
  sequence.phase = SequencePhase::kPreempted;
  sequence.restoration.reset();
  stop_sharing(sequence);
  if (!sequence.progress.is_in_flight()) settle(sequence);
}

void Roster::change_weights(Sequence& sequence, AdapterUse adapter) {
  sequence.next_adapter = std::move(adapter);
  ++sequence.weight_changes;
  if (sequence.home == &batch_) {
    if (!sequence.is_leaving()) preempt(sequence);
    return;
  }
  sequence.restoration.reset();
  stop_sharing(sequence);
  drop_blocks(sequence);
  take_weights(sequence);
  if (sequence.home == &queue_.following()) move(sequence, queue_.waiting());
  if (sequence.phase != SequencePhase::kStalled) return;
  sequence.phase = SequencePhase::kParked;
  ++parks_;
}

// Of the older ones it holds nothing any more.
void Roster::take_weights(Sequence& sequence) {
  if (!sequence.next_adapter) return;
  sequence.adapter = std::move(*sequence.next_adapter);
  sequence.next_adapter.reset();
  sequence.may_tell_revision = sequence.request->tells_revisions;
  if (sequence.stretched_revision) sequence.stretch();
}

// Of one that waits: what it holds has other angles.
void Roster::stretch_if_long(Sequence& sequence) {
  if (stretch_beyond_ == 0 || sequence.stretched_revision || sequence.known() <= stretch_beyond_) return;
  if (sequence.held_blocks() > 0) drop_blocks(sequence);
  sequence.stretch();
}

void Roster::restart_long() {
  if (stretch_beyond_ == 0) return;
  for (auto at = batch_.begin(); at != batch_.end();) {
    Sequence& sequence = (at++)->second;
    const std::int32_t length = std::max(sequence.known(), sequence.may_decode() ? sequence.progress.most() + 1 : 0);
    if (sequence.active() && !sequence.stretched_revision && length > stretch_beyond_) preempt(sequence);
  }
}

}  // namespace braid::sched
