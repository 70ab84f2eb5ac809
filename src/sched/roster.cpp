#include "sched/roster.h"

#include "sched/ticket.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>

namespace braid::sched {

namespace {

// Blocks kept free when admitting, at most this part of all: the batch grows by a block a sequence now and then, and admitting
// someone only to preempt him at once wastes his prefill.
constexpr std::int32_t kMarginPart = 16;

}  // namespace

Roster::Roster(const SchedulerOptions& options) : block_tokens_(options.block_tokens), pool_(options.blocks) {
  if (options.prefix_cache) prefix_index_.emplace(pool_, options.block_tokens);
  for (auto slot = static_cast<model::SlotId>(options.max_batch); slot > 0; --slot) slots_.push_back(slot - 1);
}

Sequence& Roster::enqueue(Request request, std::int32_t answer_room) {
  Sequence& sequence = waiting_.emplace_back(next_serial_++, std::move(request), answer_room, pool_);
  sequence.home = &waiting_;
  sequence.self = std::prev(waiting_.end());
  try {
    if (!sequence.id.empty()) by_id_.emplace(sequence.id, &sequence);
  } catch (...) {
    waiting_.pop_back();
    throw;
  }
  return sequence;
}

Sequence* Roster::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() ? found->second : nullptr;
}

void Roster::admit() {
  while (!waiting_.empty() && !slots_.empty()) {
    Sequence& sequence = waiting_.front();
    if (sequence.blocks.size() == 0) reuse_prefix(sequence);
    const std::int32_t blocks = blocks_for(sequence.known());
    const std::int32_t wanted = blocks - sequence.blocks.size() + margin();
    if (pool_.free() + parked_blocks_ - sequence.blocks.size() < wanted) return;  // nobody gives up blocks for nothing
    if (!reclaim_parked(wanted, &sequence)) return;
    move(sequence, batch_);
    sequence.blocks.grow_to(blocks);
    sequence.slot = slots_.back();
    slots_.pop_back();
    sequence.starts = true;
    sequence.phase = SequencePhase::kPrefill;
    count_reuse(sequence);
  }
}

// What it finds it holds from now on, whether it is admitted at once or not, and gives up like any blocks outside the batch.
void Roster::reuse_prefix(Sequence& sequence) {
  if (!prefix_index_) return;
  path_.clear();
  prefix_index_->match(sequence.cache_salt, std::span(sequence.tokens).first(sequence.tokens.size() - 1), path_);
  sequence.blocks.adopt(path_);
  parked_blocks_ += sequence.blocks.size();
  sequence.published = sequence.blocks.size();
  sequence.planned = sequence.reused = sequence.published * block_tokens_;
}

void Roster::count_reuse(Sequence& sequence) {
  if (!sequence.cached_tokens) sequence.cached_tokens = sequence.reused;
  if (!prefix_index_) return;
  cache_hit_tokens_ += static_cast<std::uint64_t>(std::exchange(sequence.reused, 0));
  cache_miss_tokens_ += static_cast<std::uint64_t>(sequence.known() - sequence.planned);
}

void Roster::publish(Sequence& sequence, std::int32_t positions) {
  if (!prefix_index_) return;
  for (std::int32_t next = sequence.published; (next + 1) * block_tokens_ <= positions; next = ++sequence.published) {
    const cache::BlockId own = sequence.blocks[next];
    const cache::BlockId parent = next > 0 ? sequence.blocks[next - 1] : cache::PrefixIndex::kNoParent;
    const auto begin = static_cast<std::size_t>(next) * static_cast<std::size_t>(block_tokens_);
    const auto tokens = std::span(sequence.tokens).subspan(begin, static_cast<std::size_t>(block_tokens_));
    const auto known = prefix_index_->insert(parent, sequence.cache_salt, tokens, own);
    if (!known) return;
    if (*known != own) sequence.blocks.replace(next, *known);
  }
}

std::int32_t Roster::margin() const { return std::min(static_cast<std::int32_t>(batch_.size()), pool_.total() / kMarginPart); }

std::int32_t Roster::make_room() {
  if (pool_.free() >= static_cast<std::int32_t>(batch_.size())) return 0;
  // A full stream does not decode, so it wants no block: a slow reader costs nobody else theirs.
  const auto wants_block = [this](const Sequence& sequence) {
    return sequence.may_decode() && sequence.needs_block(block_tokens_) && stream_room(sequence) > 0;
  };
  std::int32_t needed = 0;
  std::int32_t promised = 0;  // blocks of those who have left and wait for a posted step
  for (const Sequence& sequence : batch_) {
    if (!sequence.active()) promised += freed_by(sequence);
    if (wants_block(sequence)) ++needed;
  }
  std::int32_t preempted = 0;
  while (!reclaim_parked(needed - promised, nullptr)) {
    Sequence& victim = youngest_active();
    if (wants_block(victim)) --needed;
    if (victim.in_flight > 0) promised += freed_by(victim);
    preempt(victim);
    ++preempted;
  }
  return preempted;
}

// True once `wanted` blocks are free, after taking them from the youngest outside the batch as far as it needs; never from `keep`.
bool Roster::reclaim_parked(std::int32_t wanted, const Sequence* keep) {
  const auto take_from = [&](SequenceList& list) {
    for (auto at = list.rbegin(); at != list.rend() && pool_.free() < wanted && parked_blocks_ > 0; ++at)
      if (&*at != keep) drop_blocks(*at);
  };
  if (pool_.free() < wanted) take_from(stalled_);
  if (pool_.free() < wanted) take_from(waiting_);
  return pool_.free() >= wanted;
}

// Whoever holds a block of a shared beginning holds those before it, so those that nobody else holds are at the end.
std::int32_t Roster::freed_by(const Sequence& sequence) const {
  const auto blocks = sequence.blocks.first(sequence.blocks.size());
  const auto own = std::ranges::partition_point(blocks, [this](cache::BlockId block) { return pool_.references(block) > 1; });
  return static_cast<std::int32_t>(blocks.end() - own);
}

void Roster::drop_blocks(Sequence& sequence) {
  if (sequence.home != &batch_) parked_blocks_ -= sequence.blocks.size();
  sequence.blocks.clear();
  sequence.planned = sequence.reused = sequence.published = 0;
}

// There is one: a sequence that is alone never needs a block that the pool does not have (see admission).
Sequence& Roster::youngest_active() {
  const auto found = std::find_if(batch_.rbegin(), batch_.rend(), [](const Sequence& sequence) { return sequence.active(); });
  assert(found != batch_.rend());
  return *found;
}

void Roster::preempt(Sequence& sequence) {
  sequence.phase = SequencePhase::kPreempted;
  if (sequence.in_flight == 0) settle(sequence);
}

void Roster::stall(Sequence& sequence) {
  assert(sequence.phase == SequencePhase::kDecode && sequence.in_flight == 0);
  sequence.phase = SequencePhase::kStalled;
  leave_batch(sequence, stalled_);
}

void Roster::resume(Sequence& sequence) {
  assert(sequence.phase == SequencePhase::kStalled);
  sequence.phase = SequencePhase::kWaiting;
  move(sequence, waiting_);
}

void Roster::retire(Sequence& sequence) {
  if (!sequence.id.empty()) by_id_.erase(sequence.id);
  sequence.phase = SequencePhase::kDone;
  if (sequence.in_flight == 0) settle(sequence);
}

void Roster::settle(Sequence& sequence) {
  assert(sequence.in_flight == 0);
  if (sequence.phase == SequencePhase::kPreempted) {
    drop_blocks(sequence);
    // Coming back it samples at once, so its stream needs room by then.
    const TokenStream& stream = sequence.ticket->stream();
    const bool is_full = stream.size() == stream.capacity();
    sequence.phase = is_full ? SequencePhase::kStalled : SequencePhase::kWaiting;
    leave_batch(sequence, is_full ? stalled_ : waiting_);
  } else if (sequence.phase == SequencePhase::kDone) {
    if (sequence.home == &batch_) slots_.push_back(sequence.slot);
    drop_blocks(sequence);
    sequence.home->erase(sequence.self);
  }
}

void Roster::leave_batch(Sequence& sequence, SequenceList& to) {
  slots_.push_back(sequence.slot);
  move(sequence, to);
}

// Keeps the order of submission. The search starts at the end where the place nearly always is: who returns to the queue is older
// than most there, who joins the batch is younger.
void Roster::move(Sequence& sequence, SequenceList& to) {
  if (sequence.home == &batch_) parked_blocks_ += sequence.blocks.size();
  if (&to == &batch_) parked_blocks_ -= sequence.blocks.size();
  auto place = to.begin();
  if (&to == &waiting_) {
    while (place != to.end() && place->serial < sequence.serial) ++place;
  } else {
    place = to.end();
    while (place != to.begin() && std::prev(place)->serial > sequence.serial) --place;
  }
  to.splice(place, *sequence.home, sequence.self);
  sequence.home = &to;
}

}  // namespace braid::sched
