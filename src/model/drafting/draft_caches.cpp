#include "model/drafting/draft_caches.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace braid::model {

void DraftCaches::allocate(std::int32_t blocks) {
  free_.resize(static_cast<std::size_t>(blocks));
  std::iota(free_.rbegin(), free_.rend(), 0);
}

void DraftCaches::end(step::SlotId slot) {
  const std::size_t cache = std::exchange(by_slot_[slot], kNoCache);
  if (cache != kNoCache) caches_[cache].owner.reset();
}

// The slot's own, or of those without an owner the one that has most in common with its text, or was not used for longest.
DraftCaches::Cache& DraftCaches::cache_of(step::SlotId slot, std::span<const TokenId> text, const HeldTokens& held) {
  if (by_slot_[slot] != kNoCache) return caches_[by_slot_[slot]];
  std::size_t best = kNoCache;
  std::size_t most = 0;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    if (caches_[i].owner) continue;
    const std::size_t common = held.common(text, caches_[i].blocks);
    if (best == kNoCache || common > most || (common == most && caches_[i].used < caches_[best].used)) best = i;
    most = std::max(most, common);
  }
  by_slot_[slot] = best;  // there are as many as slots
  caches_[best].owner = slot;
  return caches_[best];
}

bool DraftCaches::take_blocks_of_others(std::uint64_t step) {
  Cache* oldest = nullptr;
  for (Cache& cache : caches_)
    if (cache.used < step && !cache.blocks.empty() && (oldest == nullptr || cache.used < oldest->used)) oldest = &cache;
  if (oldest == nullptr) return false;
  free_.insert(free_.end(), oldest->blocks.begin(), oldest->blocks.end());
  oldest->blocks.clear();
  return true;
}

std::span<const std::int32_t> DraftCaches::reach(step::SlotId slot, std::span<const TokenId> text, std::size_t positions,
                                                 const HeldTokens& held, std::int32_t block_tokens, std::uint64_t step) {
  Cache& cache = cache_of(slot, text, held);
  cache.used = step;
  const auto width = static_cast<std::size_t>(block_tokens);
  const std::size_t places = (positions + width - 1) / width;
  while (cache.blocks.size() < places) {
    if (free_.empty() && !take_blocks_of_others(step)) return {};
    cache.blocks.push_back(free_.back());
    free_.pop_back();
  }
  return std::span<const std::int32_t>(cache.blocks).first(places);
}

}  // namespace braid::model
