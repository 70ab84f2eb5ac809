// Who has which blocks of a draft model's pool, where they are not those of the large model's sequences.
#pragma once

#include "model/drafting/held_tokens.h"
#include "step/step.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// A cache for each slot. One that has ended, or was preempted, leaves its blocks to the next one that begins like it; where they are short,
// the cache that was not used for longest is given up. Strand only.
class DraftCaches {
 public:
  explicit DraftCaches(std::size_t slots) : caches_(slots), by_slot_(slots, kNoCache) {}

  // Once, before the first step: all blocks of the pool.
  void allocate(std::int32_t blocks);

  void end(step::SlotId slot);

  // Blocks of the slot that cover so many positions, those with most of the text's beginning where it has none yet; empty: all that are held
  // belong to the step. Valid as long as that.
  std::span<const std::int32_t> reach(step::SlotId slot, std::span<const TokenId> text, std::size_t positions, const HeldTokens& held,
                                      std::int32_t block_tokens, std::uint64_t step);

 private:
  static constexpr std::size_t kNoCache = ~std::size_t{0};

  struct Cache {
    std::vector<std::int32_t> blocks;
    std::uint64_t used = 0;  // the step that used it last
    std::optional<step::SlotId> owner;
  };

  Cache& cache_of(step::SlotId slot, std::span<const TokenId> text, const HeldTokens& held);
  bool take_blocks_of_others(std::uint64_t step);

  std::vector<std::int32_t> free_;
  std::vector<Cache> caches_;
  std::vector<std::size_t> by_slot_;
};

}  // namespace braid::model
