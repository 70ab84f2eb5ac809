#include "sched/roster.h"

#include "sched/limits.h"
#include "sched/ticket.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace braid::sched {

namespace {

// Blocks kept free when admitting, at most this part of all: the batch grows by a block a sequence now and then, and admitting
// someone only to preempt him at once wastes his prefill.
constexpr std::int32_t kMarginPart = 16;

// How many smaller ones may pass the first in line while it lacks blocks, and how far behind it they may be found.
constexpr std::int32_t kMostPasses = 16;
constexpr std::int32_t kPassWindow = 16;

}  // namespace

Roster::Roster(const SchedulerOptions& options, store::RecordStore* store, std::function<void()> on_progress)
    : block_tokens_(options.block_tokens), groups_(options.groups, options.block_tokens, options.state_blocks),
      pool_(std::max(options.blocks, options.most_blocks), groups_.count() + 1), target_(options.blocks),
      stretch_beyond_(options.stretch_beyond), write_through_(options.write_through), has_drafts_(options.draft_bytes > 0),
      kv_verify_(options.kv_verify), queue_(options.priority_ageing) {
  std::vector<cache::BlockId> others;
  pool_.withdraw(pool_.total() - options.blocks, others);
  if (options.prefix_cache) {
    prefix_index_.emplace(pool_, options.block_tokens, cache::xxh3_key, options.kv_identity, groups_.of_index());
    prefix_index_->bound_states(options.most_state_blocks);
    shared_prefill_.emplace(*prefix_index_, options.block_tokens);
  }
  if (prefix_index_ && store != nullptr) {
    restorer_.emplace(*store, *prefix_index_, groups_, options, std::move(on_progress));
    prefix_index_->on_evict([&tier = restorer_->tier()](cache::BlockId node, std::int32_t group, std::int32_t offset) {
      group == cache::PrefixIndex::kState ? tier.save_state(node, offset) : tier.save(node, group);
    });
  }
  for (auto slot = static_cast<step::SlotId>(options.max_batch); slot > 0; --slot) slots_.push_back(slot - 1);
}

std::size_t Roster::decoding() const {
  return static_cast<std::size_t>(std::ranges::count_if(batch_, [](const auto& entry) { return entry.second.decodes(); }));
}

void Roster::admit(double prefill_rate, std::size_t most_rows) {
  prefill_rate_ = prefill_rate;
  Sequence* blocked = nullptr;
  std::int32_t looked_at = 0;
  const bool is_bounded = most_rows < batch_.size() + slots_.size();
  std::size_t rows = is_bounded ? decoding() : 0;
  const auto begin = [&](Sequence& sequence) {
    rows += sequence.decodes() ? 1 : 0;
    start(sequence);
  };
  for (auto at = queue_.waiting().begin(); at != queue_.waiting().end() && !slots_.empty();) {
    Sequence& sequence = (at++)->second;
    if (rows >= most_rows && sequence.decodes()) return;
    stretch_if_long(sequence);
    if (restorer_ && restorer_->is_looking(sequence)) continue;  // for a moment, in which others may pass it
    if (blocked == nullptr) {
      if (follow(sequence)) continue;
      if (take_blocks(sequence)) {
        begin(sequence);
      } else {
        blocked = &sequence;
      }
    } else {
      if (blocked->passes == kMostPasses || looked_at++ == kPassWindow) return;
      if (!fits_free(sequence) || follow(sequence) || !take_blocks(sequence)) continue;
      ++blocked->passes;
      begin(sequence);
    }
  }
}

// Looks its prefix up, which it holds from then on unless it follows.
bool Roster::follow(Sequence& sequence) {
  if (!prefix_index_ || kv_verify_ || !sequence.blocks.empty() || sequence.computes_all()) return false;
  reuse_prefix(sequence, sequence.known() - 1, restorer_.has_value());
  if (!shared_prefill_->follow(sequence)) return false;
  drop_blocks(sequence);
  move(sequence, queue_.following());
  return true;
}

void Roster::return_woken() {
  for (Sequence* sequence : woken_) move(*sequence, queue_.waiting());
  woken_.clear();
}

// All blocks that it starts with or none.
bool Roster::take_blocks(Sequence& sequence) {
  const std::int32_t places = blocks_for(sequence.known());
  const std::int32_t wanted = sequence.blocks.missing_to_start(places) + margin();
  if (pool_.free() < wanted) {
    const Sequence* victim = groups_.has_states() ? next_victim() : nullptr;
    if (!can_reclaim(wanted - pool_.free(), sequence, victim)) return false;  // nobody gives up blocks for nothing
    if (!reclaim(wanted, &sequence, victim)) return false;
  }
  set_outside_holder(sequence, false);
  return sequence.blocks.start(places);
}

bool Roster::fits_free(const Sequence& sequence) const {
  return sequence.blocks.to_start(blocks_for(sequence.known())) + margin() <= pool_.free();
}

void Roster::start(Sequence& sequence) {
  move(sequence, batch_);
  most_of_batch_ += most_blocks(sequence);
  sequence.slot = slots_.back();
  slots_.pop_back();
  sequence.starts = true;
  sequence.passes = 0;
  if (!sequence.queue_seconds) {
    sequence.queue_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - sequence.arrival).count();
    queue_wait_.observe(*sequence.queue_seconds);
  }
  if (prefix_index_) shared_prefill_->lead(sequence, sequence.progress.computed(), woken_);
  begin_prefill(sequence);
}

// It has all that could be found in full blocks.
void Roster::compute_rest(Sequence& sequence) {
  sequence.phase = SequencePhase::kPrefill;
  if (sequence.state != nullptr) sequence.state->has_asked_disk = false;
  fork_beginning(sequence);
  count_reuse(sequence);
  // Others find as much of that block as it has found.
  if (sequence.leads && sequence.progress.planned() > sequence.progress.computed()) {
    shared_prefill_->lead(sequence, sequence.progress.planned(), woken_);
  }
}

// Of the first block that it does not share, as much as others have computed. Nothing when part of it is its own work.
void Roster::fork_beginning(Sequence& sequence) {
  if (!prefix_index_ || kv_verify_ || sequence.computes_all()) return;
  const std::int32_t begin = sequence.progress.published_positions();
  const std::int32_t wanted = std::min(sequence.known() - 1 - begin, block_tokens_);
  if (!sequence.can_publish() || sequence.progress.planned() != begin || wanted <= 0) return;
  if (sequence.state != nullptr) {  // as much as goes with it is held already
    if (sequence.fork_source.size() > 0) sequence.progress.reuse(sequence.state->source_end - begin);
    return;
  }
  const auto known = sequence.view().first(static_cast<std::size_t>(begin + wanted));
  const auto found = prefix_index_->common_beginning(sequence.last_published(), known, static_cast<std::size_t>(begin));
  if (found.count == 0) return;
  for (std::int32_t group = 0; group < groups_.count(); ++group) {
    const cache::BlockId source = prefix_index_->handle(found.block, group);
    sequence.fork_source.adopt({&source, 1});
  }
  sequence.progress.reuse(found.count);
}

// What it finds it holds from now on, whether it is admitted at once or not, and gives up like any blocks outside the batch. Of a path
// longer than a window only what it will see: the rest could fill the pool, and it would never find room to start.
void Roster::reuse_prefix(Sequence& sequence, std::int32_t most, bool may_restore) {
  if (kv_verify_) return;
  path_.clear();
  prefix_index_->match(sequence.view().first(static_cast<std::size_t>(most)), path_);
  path_.resize(static_cast<std::size_t>(sequence.blocks.reach(*prefix_index_, path_)));
  if (sequence.state != nullptr) {
    const std::vector<cache::BlockId> in_pool = path_;
    reuse_state(sequence, most);
    if (may_restore) await_state(sequence, in_pool);
  }
  sequence.blocks.adopt(*prefix_index_, path_);
  sequence.progress.find(sequence.state != nullptr ? sequence.state->source_end / block_tokens_ : static_cast<std::int32_t>(path_.size()));
  drop_invisible(sequence, groups_);
  set_outside_holder(sequence, true);
}

void Roster::count_reuse(Sequence& sequence) {
  if (!sequence.cached_tokens) sequence.cached_tokens = sequence.progress.reused();
  if (!prefix_index_) return;
  cache_hit_tokens_ += static_cast<std::uint64_t>(sequence.progress.take_reused());
  cache_miss_tokens_ += static_cast<std::uint64_t>(sequence.known() - sequence.progress.planned());
}

// Most rows of an answer complete no block, and only who leads has anything to tell or to stop.
void Roster::publish(Sequence& sequence) {
  const bool has_full = sequence.progress.published_positions() + block_tokens_ <= sequence.progress.computed();
  if (has_full || sequence.leads) publish_full(sequence);
  if (sequence.state != nullptr) publish_states(sequence, kNoNode);
  if (!write_through_ || !restorer_) return;
  if (!awaits_drafts(sequence)) {
    restorer_->save_full(sequence, sequence.progress.computed());
  } else if (sequence.drafts.has_models) {
    restorer_->save_full(sequence, sequence.progress.computed() - block_tokens_);
  }
}

// A model that guesses reads what it lacks of the text when guesses are wanted, which is later than it is published. Once it guesses it is
// behind by what the last step brought.
bool Roster::awaits_drafts(const Sequence& sequence) const {
  const DraftMethod method = sequence.request->speculation.method;
  return has_drafts_ && (method == DraftMethod::kAuto || method == DraftMethod::kDraft);
}

void Roster::publish_full(Sequence& sequence) {
  const std::int32_t positions = sequence.progress.computed();
  if (!prefix_index_ || !sequence.can_publish()) return stop_sharing(sequence);
  for (std::int32_t next = sequence.progress.published(); (next + 1) * block_tokens_ <= positions; ++next) {
    const cache::BlockId own = sequence.blocks[0][next];
    if (own == cache::BlockTable::kAbsent) return stop_sharing(sequence);
    const auto begin = static_cast<std::size_t>(next) * static_cast<std::size_t>(block_tokens_);
    const auto known = prefix_index_->insert(sequence.last_published(), sequence.view(), begin, own);
    if (!known) break;
    if (kv_verify_) verify(sequence, next, 0, own, *known);
    if (*known != own) sequence.blocks[0].replace(next, *known);
    attach(sequence, next, *known);
    sequence.progress.publish();
  }
  if (!sequence.leads) return;
  if (positions < sequence.known()) {
    shared_prefill_->lead(sequence, positions, woken_);
  } else {
    publish_tail(sequence);
    shared_prefill_->leave(sequence, woken_);
  }
  return_woken();
}

// What other groups have of these positions goes to the node `known`, or is exchanged for what that has already.
void Roster::attach(Sequence& sequence, std::int32_t index, cache::BlockId known) {
  for (std::int32_t group = 1; group < groups_.count(); ++group) {
    cache::BlockTable& table = sequence.blocks[group];
    const cache::BlockId own = table[index];
    if (own == cache::BlockTable::kAbsent) continue;
    const cache::BlockId attached = prefix_index_->attach(known, group, own);
    if (kv_verify_ && (index + 1) * block_tokens_ <= sequence.progress.computed()) verify(sequence, index, group, own, attached);
    if (attached == own) continue;
    table.replace(index, attached);
  }
}

// The block that is not full, as far as it is computed. Returns what stands for it in the tree.
cache::BlockId Roster::publish_tail(Sequence& sequence) {
  const std::int32_t begin = sequence.progress.published_positions();
  const std::int32_t count = sequence.progress.computed() - begin;
  if (!prefix_index_ || sequence.is_void || !sequence.can_publish() || count <= 0 || count >= block_tokens_) return kNoNode;
  const std::int32_t index = sequence.progress.published();
  const cache::BlockId tail = sequence.blocks[0][index];
  if (tail == cache::BlockTable::kAbsent) return kNoNode;  // posted rows have moved the window past it
  const auto computed = sequence.view().first(static_cast<std::size_t>(sequence.progress.computed()));
  const cache::BlockId node = prefix_index_->insert_partial(sequence.last_published(), computed, static_cast<std::size_t>(begin), tail);
  attach(sequence, index, tail);
  if (sequence.state != nullptr) publish_states(sequence, node);
  return node;
}

std::int32_t Roster::margin() const {
  return std::min(static_cast<std::int32_t>(batch_.size()) * groups_.count(), pool_.usable() / kMarginPart);
}

// It neither leads nor follows any more.
void Roster::stop_sharing(Sequence& sequence) {
  if (!shared_prefill_) return;
  shared_prefill_->unfollow(sequence);
  shared_prefill_->leave(sequence, woken_);
  return_woken();
}

void Roster::retry(Sequence& sequence) {
  assert(!sequence.is_leaving() && sequence.home == &batch_);
  sequence.phase = SequencePhase::kRetrying;
  sequence.restoration.reset();
}

void Roster::unhold(Sequence& sequence) {
  if (sequence.phase == SequencePhase::kRetrying && !sequence.progress.is_in_flight()) rewind(sequence);
}

// Positions that came back before are right; what the failed step wrote behind them is written again. With a window the blocks that
// those positions see may be gone, and what a vector is summed from is, and the recurrent state, so it begins anew.
void Roster::rewind(Sequence& sequence) {
  if (groups_.any_window() || sequence.pools_all() || groups_.has_states()) {
    drop_blocks(sequence);
    if (groups_.has_states() && prefix_index_ && !sequence.computes_all()) {
      reuse_prefix(sequence, sequence.known() - 1, false);
      set_outside_holder(sequence, false);
      reclaim_checkpoints(sequence.blocks.missing_to_start(blocks_for(sequence.known())), sequence, true);
    }
    if (!sequence.blocks.start(blocks_for(sequence.known()))) return preempt(sequence);
  }
  sequence.progress.rewind();
  sequence.starts = true;
  if (sequence.cached_tokens && !groups_.has_states()) {
    sequence.phase = SequencePhase::kPrefill;
  } else {
    compute_rest(sequence);
  }
}

void Roster::stall(Sequence& sequence) {
  assert(sequence.phase == SequencePhase::kDecode && !sequence.progress.is_in_flight());
  most_of_batch_ -= most_blocks(sequence);
  leave_batch(sequence, stalled_);
  wait_for_reader(sequence, SequencePhase::kStalled);
}

void Roster::wait_for_reader(Sequence& sequence, SequencePhase phase) {
  sequence.phase = phase;
  sequence.stalled_since = std::chrono::steady_clock::now();
  ++stalls_;
}

void Roster::park(Sequence& sequence) {
  assert(sequence.phase == SequencePhase::kStalled);
  drop_blocks(sequence);
  sequence.phase = SequencePhase::kParked;
  ++parks_;
}

void Roster::resume(Sequence& sequence) {
  assert(sequence.is_stalled());
  sequence.phase = SequencePhase::kWaiting;
  move(sequence, queue_.waiting());
}

void Roster::remove(Sequence& sequence, bool is_cancelled) {
  if (is_cancelled) sequence.cancelled = {std::chrono::steady_clock::now(), steps_};
  queue_.forget(sequence);
  if (runs(sequence)) most_of_batch_ -= most_blocks(sequence);
  sequence.phase = SequencePhase::kDone;
  sequence.restoration.reset();
  if (write_through_ && restorer_ && !sequence.blocks.empty()) restorer_->save_full(sequence, sequence.progress.computed());
  stop_sharing(sequence);
  if (!sequence.progress.is_in_flight()) settle(sequence);
}

void Roster::settle(Sequence& sequence) {
  assert(!sequence.progress.is_in_flight());
  if (sequence.phase == SequencePhase::kRetrying) {
    sequence.is_void = false;
    if (!sequence.held) rewind(sequence);
  } else if (sequence.phase == SequencePhase::kPreempted) {
    drop_blocks(sequence);
    take_weights(sequence);
    sequence.is_void = false;
    // Coming back it samples at once, so its stream needs room by then.
    const TokenStream& stream = sequence.ticket->stream();
    const bool is_full = stream.size() == stream.capacity();
    sequence.phase = SequencePhase::kWaiting;
    leave_batch(sequence, is_full ? stalled_ : queue_.waiting());
    if (is_full) {
      wait_for_reader(sequence, SequencePhase::kParked);
      ++parks_;
    } else {
      hold_beginning(sequence, sequence.known() - 1);
    }
  } else if (sequence.phase == SequencePhase::kDone) {
    if (sequence.home == &batch_) slots_.push_back(sequence.slot);
    drop_blocks(sequence);
    if (sequence.cancelled) observe_cancelled(sequence);
    sequence.home->erase(sequence.self);
  }
}

void Roster::observe_cancelled(const Sequence& sequence) {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - sequence.cancelled->when;
  cancel_to_free_.observe(taken.count());
  ++cancel_to_free_steps_[std::min<std::size_t>(steps_ - sequence.cancelled->steps, cancel_to_free_steps_.size() - 1)];
}

void Roster::leave_batch(Sequence& sequence, SequenceMap& to) {
  slots_.push_back(sequence.slot);
  move(sequence, to);
  set_outside_holder(sequence, true);
}

void Roster::move(Sequence& sequence, SequenceMap& to) {
  sequence.self = to.insert(sequence.home->extract(sequence.self)).position;
  sequence.home = &to;
}

// Outside the batch, with the blocks that it holds at the moment of the call.
void Roster::set_outside_holder(Sequence& sequence, bool is_holder) {
  if (!is_holder) {
    outside_holders_.erase(sequence.rank);
  } else if (sequence.held_blocks() > 0) {
    outside_holders_.emplace(sequence.rank, &sequence);
  }
}

}  // namespace braid::sched
