#include "sched/disk_tier.h"

#include "sched/compute_strand.h"
#include "sched/verify.h"

#include <algorithm>
#include <utility>

namespace braid::sched {
DiskTier::DiskTier(store::RecordStore& store, cache::PrefixIndex& index, const SchedulerOptions& options, std::function<void()> on_progress)
    : store_(store), index_(index), block_tokens_(static_cast<std::size_t>(options.block_tokens)),
      groups_(options.block_use.empty() ? static_cast<std::int32_t>(options.groups.size()) : groups_with_records(options.block_use)),
      state_blocks_(options.state_blocks), draft_bytes_(options.draft_bytes), reserved_buffers_(store.free_buffers() / 2),
      on_progress_(std::move(on_progress)) {
  store_.on_written(on_progress_);
  static_assert(std::tuple_size_v<decltype(posted_)> == ComputeStrand::kMaxPosted);
}

bool DiskTier::has_pieces(const cache::PrefixKey& key, std::int32_t first, std::int32_t count) const {
  for (std::int32_t piece = first; piece < first + count; ++piece)
    if (!store_.contains(piece_key(key, piece))) return false;
  return true;
}

// That are to be written.
std::size_t DiskTier::missing(const cache::PrefixKey& key, std::int32_t first, std::int32_t count) const {
  std::size_t missing = 0;
  for (std::int32_t piece = first; piece < first + count; ++piece) missing += store_.lacks(piece_key(key, piece)) ? 1 : 0;
  return missing;
}

void DiskTier::save(cache::BlockId node, std::int32_t group) {
  const cache::PrefixKey& key = index_.key(node);
  if (group < groups_ && wants(piece_key(key, group))) add_save(index_.handle(node, group), group, key, index_.path_to(node, path_));
}

// Within a block with the block's beginning, under the key of just these tokens: how the block goes on is not known to whom it is of use.
void DiskTier::save_state(cache::BlockId node, std::int32_t offset) {
  const cache::SequenceView whole = index_.path_to(node, path_);
  const std::size_t begin = (path_.blocks.size() - 1) * block_tokens_;
  const cache::SequenceView sequence = whole.first(begin + static_cast<std::size_t>(offset));
  const cache::PrefixKey key = index_.next_key(begin > 0 ? index_.key(path_.blocks[1]) : cache::PrefixKey(), sequence, begin);
  const bool is_within = std::cmp_less(offset, block_tokens_);
  for (std::int32_t group = 0; is_within && group < groups_; ++group)
    if (index_.handle(node, group) == cache::PrefixIndex::kNoHandle) return;
  const std::size_t missing = missing_parts(key) + (is_within ? missing_groups(key) : 0);
  if (missing == 0 || store_.free_buffers() < missing) return;  // a part of a state is of no use
  for (std::int32_t group = 0; is_within && group < groups_; ++group) add_save(index_.handle(node, group), group, key, sequence);
  const std::span<const cache::BlockId> state = index_.state_at(node, offset);
  for (std::int32_t part = 0; part < state_blocks_; ++part) add_save(state[static_cast<std::size_t>(part)], groups_ + part, key, sequence);
}

void DiskTier::save(cache::BlockId block, std::int32_t group, const cache::PrefixKey& key, const cache::SequenceView& sequence) {
  if (group < groups_) add_save(block, group, key, sequence);
}

void DiskTier::add_save(cache::BlockId block, std::int32_t piece, const cache::PrefixKey& key, const cache::SequenceView& sequence) {
  const cache::PrefixKey own = piece_key(key, piece);
  if (!wants(own)) return;
  if (auto record = store_.begin_write(own, sequence)) saves_.push_back({block, piece, std::move(*record), nullptr, {}});
}

bool DiskTier::verify(cache::BlockId node, std::int32_t group, std::string what) {
  const cache::PrefixKey key = piece_key(index_.key(node), group);
  if (group >= groups_ || !store_.contains(key)) return false;
  const cache::SequenceView path = index_.path_to(node, path_);
  auto record = store_.begin_write(key, path);
  if (!record) return false;
  saves_.push_back({index_.handle(node, group), group, std::move(*record), std::make_shared<const store::Prefix>(path), std::move(what)});
  return true;
}

void DiskTier::compare(Save save) {
  const cache::PrefixKey key = save.record.header.key;
  const auto prefix = save.compare;
  store_.read(key, prefix, prefix->tokens.size(),
              [this, save = std::make_shared<Save>(std::move(save))](std::optional<store::ReadBlock> block) {
    const std::size_t compared = save->record.payload.size() - draft_bytes_;
    if (block && !std::ranges::equal(block->payload.first(compared), save->record.payload.first(compared))) abort_on_difference(save->what);
    on_progress_();
  });
}

std::shared_ptr<Restoration> DiskTier::prefetch(const cache::SequenceView& sequence, std::int32_t have, std::int32_t blocks) {
  if (store_.free_buffers() <= reserved_buffers_) return nullptr;
  std::erase_if(prefetched_, [](const auto& other) { return other.expired(); });
  auto restoration = find(sequence, have, blocks);
  if (restoration == nullptr || is_on_its_way(*restoration)) return nullptr;
  ask(restoration, reserved_buffers_);
  prefetched_.push_back(restoration);
  return restoration;
}

// A key stands for all blocks before it, too.
bool DiskTier::is_on_its_way(const Restoration& wanted) const {
  const auto last = static_cast<std::size_t>(wanted.end - 1);
  return std::any_of(prefetched_.begin(), prefetched_.end(), [&wanted, last](const auto& weak) {
    const std::shared_ptr<const Restoration> other = weak.lock();
    return other != nullptr && other->next_block() <= wanted.begin && other->end >= wanted.end && other->keys[last] == wanted.keys[last];
  });
}

std::shared_ptr<Restoration> DiskTier::restore(std::shared_ptr<Restoration> prefetched, const cache::SequenceView& sequence,
                                               std::int32_t have, std::int32_t blocks) {
  const std::int32_t begin = std::max(blocks, have / static_cast<std::int32_t>(block_tokens_));
  const auto holds = [&](const Restoration& r) {
    const bool is_left = begin < r.end || (begin == r.end && r.state_blocks > 0);
    return begin >= r.begin && is_left && have < r.tokens && std::cmp_less((begin - r.begin) * groups_, r.pieces.size());
  };
  if (prefetched == nullptr || !holds(*prefetched)) {
    prefetched.reset();  // gives its buffers back first
    auto restoration = find(sequence, have, blocks);
    if (restoration == nullptr || restoration->begin < begin) return nullptr;
    ask(restoration, 0);
    return restoration;
  }
  prefetched->pieces.erase(prefetched->pieces.begin(), prefetched->pieces.begin() + (begin - prefetched->begin) * groups_);
  prefetched->begin = begin;
  prefetched->next = begin * groups_;
  prefetched->begun = prefetched->progress = std::chrono::steady_clock::now();
  return prefetched;
}

std::shared_ptr<Restoration> DiskTier::find(const cache::SequenceView& sequence, std::int32_t have, std::int32_t blocks) const {
  auto restoration = std::make_shared<Restoration>();
  Restoration& r = *restoration;
  index_.keys(sequence, r.keys);
  const auto block_tokens = static_cast<std::int32_t>(block_tokens_);
  const std::int32_t in_pool = std::max(blocks, have / block_tokens);
  const auto end = std::find_if_not(r.keys.begin() + in_pool, r.keys.end(), [this](const cache::PrefixKey& key) { return has_block(key); });
  r.keys.erase(end, r.keys.end());
  r.tokens = state_blocks_ > 0 ? find_state(sequence, have, r.keys) : static_cast<std::int32_t>(r.keys.size() * block_tokens_);
  if (r.tokens <= have) return nullptr;
  r.begin = std::min(in_pool, r.tokens / block_tokens);
  r.groups = groups_;
  r.state_blocks = state_blocks_;
  r.next = r.begin * groups_;
  r.end = static_cast<std::int32_t>(r.keys.size());
  restoration->prefix = std::make_shared<const store::Prefix>(sequence.first(static_cast<std::size_t>(r.tokens)));
  restoration->begun = restoration->progress = std::chrono::steady_clock::now();
  return restoration;
}

// After how many tokens the last state is that the disk has, at the end of one of these blocks or within the one that follows, whose key is
// then the last. Not more than `have`: there is none behind these.
std::int32_t DiskTier::find_state(const cache::SequenceView& sequence, std::int32_t have, std::vector<cache::PrefixKey>& keys) const {
  const auto least = static_cast<std::size_t>(have);
  for (;; keys.pop_back()) {
    const std::size_t begin = keys.size() * block_tokens_;
    for (std::size_t end = std::min(begin + block_tokens_ - 1, sequence.tokens.size()); end > std::max(begin, least); --end) {
      const cache::PrefixKey key = index_.next_key(keys.empty() ? cache::PrefixKey() : keys.back(), sequence.first(end), begin);
      if (!has_state(key) || !has_block(key)) continue;
      keys.push_back(key);
      return static_cast<std::int32_t>(end);
    }
    if (begin <= least || has_state(keys.back())) return static_cast<std::int32_t>(begin);
  }
}

void DiskTier::ask(const std::shared_ptr<Restoration>& restoration, std::size_t spare) {
  Restoration& r = *restoration;
  for (auto piece = r.next + static_cast<std::int32_t>(r.pieces.size()); piece < r.last_piece() && store_.free_buffers() > spare; ++piece) {
    const std::int32_t part = piece - r.end * groups_;  // of the state, if not negative
    const std::int32_t block = part >= 0 ? r.end - 1 : piece / groups_;
    const cache::PrefixKey key = piece_key(r.keys[static_cast<std::size_t>(block)], part >= 0 ? groups_ + part : piece % groups_);
    r.pieces.emplace_back();
    const std::size_t tokens = std::min(static_cast<std::size_t>(block + 1) * block_tokens_, r.prefix->tokens.size());
    const bool is_asked =
        store_.read(key, r.prefix, tokens, [this, piece, weak = std::weak_ptr(restoration)](std::optional<store::ReadBlock> read) {
          if (const auto alive = weak.lock()) on_arrived(*alive, piece, std::move(read));
          on_progress_();
        });
    if (is_asked) {
      r.progress = std::chrono::steady_clock::now();
      continue;
    }
    r.pieces.pop_back();
    return r.stop_at(block);  // it has been pruned meanwhile
  }
}

void DiskTier::on_arrived(Restoration& restoration, std::int32_t piece, std::optional<store::ReadBlock> block) {
  const std::int32_t place = piece - restoration.next;
  if (place < 0) return;  // found in RAM meanwhile
  if (block) {
    restoration.pieces[static_cast<std::size_t>(place)] = std::move(block);
  } else {
    restoration.stop_at(restoration.groups > 0 ? piece / restoration.groups : 0);
  }
}

std::int32_t DiskTier::load(const std::shared_ptr<Restoration>& restoration, const Holdings& blocks, step::StepPlan& plan) {
  Restoration& r = *restoration;
  const auto complete = [&r] { return std::min(r.next_block(), r.end); };
  const std::int32_t before = complete();
  const std::size_t loads = plan.loads.size();
  for (const std::int32_t room = blocks.places(); r.has_next(); ++r.next, r.pieces.pop_front()) {
    const std::int32_t part = r.next - r.end * groups_;
    if (part < 0 && r.next_block() >= room) break;
    const std::int32_t piece = part < 0 ? r.next % groups_ : groups_ + part;
    const cache::BlockId block = part < 0 ? blocks[piece][r.next_block()] : blocks.state()[part];
    plan.loads.push_back(copy_of(block, piece, r.pieces.front()->payload.data()));
    posted(plan.id).loads.push_back(std::move(r.pieces.front()->buffer));
  }
  const std::int32_t loaded = complete() - before;
  if (plan.loads.size() > loads) r.progress = std::chrono::steady_clock::now();
  r.loaded += loaded;
  if (!r.has_ended()) ask(restoration, 0);
  // Parts of a state whose rest is lost: this plan may copy another one to the same place, and loads come after copies.
  if (state_blocks_ > 0 && r.has_ended() && r.state_blocks == 0) plan.loads.resize(loads);
  return loaded;
}

step::BlockCopy DiskTier::copy_of(cache::BlockId block, std::int32_t piece, std::byte* bytes) const {
  if (piece < groups_) return {block, bytes, piece};
  return {block, bytes, step::kStateGroup, piece - groups_};
}

void DiskTier::complete(step::StepPlan& plan) {
  for (const Save& save : saves_) plan.saves.push_back(copy_of(save.block, save.piece, save.record.payload.data()));
  posted(plan.id).saves = std::exchange(saves_, {});
}

void DiskTier::on_step_back(const step::StepPlan& plan, bool has_failed) {
  Posted& back = posted(plan.id);
  if (!has_failed)
    for (Save& save : back.saves) {
      if (save.compare != nullptr) {
        compare(std::move(save));
      } else {
        store_.commit(std::move(save.record));
      }
    }
  back.saves.clear();
  back.loads.clear();
}

}  // namespace braid::sched
