#include "sched/disk_tier.h"

#include "sched/compute_strand.h"
#include "sched/verify.h"

#include <algorithm>
#include <utility>

namespace braid::sched {

DiskTier::DiskTier(store::BlockStore& store, cache::PrefixIndex& index, const SchedulerOptions& options, std::function<void()> on_progress)
    : store_(store), index_(index), block_tokens_(static_cast<std::size_t>(options.block_tokens)),
      reserved_buffers_(store.free_buffers() / 2), on_progress_(std::move(on_progress)) {
  store_.on_written(on_progress_);
  static_assert(std::tuple_size_v<decltype(posted_)> == ComputeStrand::kMaxPosted);
}

void DiskTier::save(cache::BlockId block) {
  const cache::PrefixKey& key = index_.key(block);
  if (wants(key)) save(block, key, index_.path_to(block, path_));
}

void DiskTier::save(cache::BlockId block, const cache::PrefixKey& key, const cache::SequenceView& sequence) {
  if (!wants(key)) return;
  if (auto record = store_.begin_write(key, sequence)) saves_.push_back({block, std::move(*record), nullptr, {}});
}

bool DiskTier::verify(cache::BlockId block, std::string what) {
  const cache::PrefixKey& key = index_.key(block);
  if (!store_.contains(key)) return false;
  const cache::SequenceView path = index_.path_to(block, path_);
  auto record = store_.begin_write(key, path);
  if (!record) return false;
  saves_.push_back({block, std::move(*record), std::make_shared<const store::Prefix>(path), std::move(what)});
  return true;
}

void DiskTier::compare(Save save) {
  const cache::PrefixKey key = save.record.header.key;
  const auto prefix = save.compare;
  store_.read(key, prefix, prefix->tokens.size(),
              [this, save = std::make_shared<Save>(std::move(save))](std::optional<store::ReadBlock> block) {
    if (block && !std::ranges::equal(block->payload, save->record.payload)) abort_on_difference(save->what);
    on_progress_();
  });
}

std::shared_ptr<Restoration> DiskTier::prefetch(const cache::SequenceView& sequence, std::int32_t have) {
  if (store_.free_buffers() <= reserved_buffers_) return nullptr;
  std::erase_if(prefetched_, [](const auto& other) { return other.expired(); });
  auto restoration = find(sequence, have);
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
    return other != nullptr && other->next <= wanted.next && other->end >= wanted.end && other->keys[last] == wanted.keys[last];
  });
}

std::shared_ptr<Restoration> DiskTier::restore(std::shared_ptr<Restoration> prefetched, const cache::SequenceView& sequence,
                                               std::int32_t have) {
  if (prefetched == nullptr || have < prefetched->next || have >= prefetched->asked) {
    prefetched.reset();  // gives its buffers back first
    auto restoration = find(sequence, have);
    if (restoration != nullptr) ask(restoration, 0);
    return restoration;
  }
  for (; prefetched->next < have; ++prefetched->next) prefetched->blocks.pop_front();
  prefetched->begun = prefetched->progress = std::chrono::steady_clock::now();
  return prefetched;
}

std::shared_ptr<Restoration> DiskTier::find(const cache::SequenceView& sequence, std::int32_t have) const {
  auto restoration = std::make_shared<Restoration>();
  index_.keys(sequence, restoration->keys);
  const auto begin = restoration->keys.begin() + have;
  const auto missing =
      std::find_if_not(begin, restoration->keys.end(), [this](const cache::PrefixKey& key) { return store_.contains(key); });
  if (missing == begin) return nullptr;
  restoration->next = restoration->asked = have;
  restoration->end = static_cast<std::int32_t>(missing - restoration->keys.begin());
  const auto length = static_cast<std::size_t>(restoration->end) * block_tokens_;
  restoration->prefix = std::make_shared<const store::Prefix>(sequence.first(length));
  restoration->begun = restoration->progress = std::chrono::steady_clock::now();
  return restoration;
}

void DiskTier::ask(const std::shared_ptr<Restoration>& restoration, std::size_t spare) {
  for (Restoration& r = *restoration; r.asked < r.end && store_.free_buffers() > spare; ++r.asked) {
    const std::int32_t index = r.asked;
    r.blocks.emplace_back();
    const bool is_asked =
        store_.read(r.keys[static_cast<std::size_t>(index)], r.prefix, static_cast<std::size_t>(index + 1) * block_tokens_,
                    [this, index, weak = std::weak_ptr(restoration)](std::optional<store::ReadBlock> block) {
      if (const auto alive = weak.lock()) on_arrived(*alive, index, std::move(block));
      on_progress_();
        });
    if (is_asked) {
      r.progress = std::chrono::steady_clock::now();
      continue;
    }
    r.blocks.pop_back();
    r.end = index;  // it has been pruned meanwhile
    return;
  }
}

void DiskTier::on_arrived(Restoration& restoration, std::int32_t index, std::optional<store::ReadBlock> block) {
  if (index < restoration.next) return;  // found in RAM meanwhile
  if (block) {
    restoration.blocks[static_cast<std::size_t>(index - restoration.next)] = std::move(block);
  } else {
    restoration.end = std::min(restoration.end, index);
  }
}

std::int32_t DiskTier::load(const std::shared_ptr<Restoration>& restoration, std::span<const cache::BlockId> blocks, step::StepPlan& plan) {
  Restoration& r = *restoration;
  std::int32_t loaded = 0;
  const auto room = static_cast<std::int32_t>(blocks.size());
  for (; r.has_next() && r.next < room; ++r.next, ++loaded) {
    plan.loads.push_back({blocks[static_cast<std::size_t>(r.next)], r.blocks.front()->payload.data()});
    posted(plan.id).loads.push_back(std::move(r.blocks.front()->buffer));
    r.blocks.pop_front();
  }
  if (loaded > 0) r.progress = std::chrono::steady_clock::now();
  r.loaded += loaded;
  if (!r.has_ended()) ask(restoration, 0);
  return loaded;
}

void DiskTier::complete(step::StepPlan& plan) {
  for (const Save& save : saves_) plan.saves.push_back({save.block, save.record.payload.data()});
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
