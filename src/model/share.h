// One model computed by several ranks together: every matrix is divided by its outputs, attention by its heads, so that no sum is split and
// the bits are those of one rank.
#pragma once

#include "kernels/kernel_table.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

// What of a model one of its ranks computes.
struct Share {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;

  bool is_whole() const { return ranks == 1; }

  // Of `all` panels, those that a rank has: neighbours, in order of the ranks.
  kernels::PanelRange panels_of(std::int32_t which, std::int64_t all) const { return {all * which / ranks, all * (which + 1) / ranks}; }
  kernels::PanelRange panels(std::int64_t all) const { return panels_of(rank, all); }

  // Whether key and value heads are divided. Where they cannot be, each rank has all of them.
  bool divides(std::int32_t kv_heads) const { return ranks > 1 && kv_heads > 0 && kv_heads % ranks == 0; }
  std::int32_t heads(std::int32_t kv_heads) const { return divides(kv_heads) ? kv_heads / ranks : kv_heads; }
  std::int32_t first_head(std::int32_t kv_heads) const { return divides(kv_heads) ? kv_heads / ranks * rank : 0; }

  bool operator==(const Share&) const = default;
};

// How ranks hand each other what they have computed.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // `own` are this rank's values, counts[r] those of rank r; `all` takes every rank's, one after the other. All ranks call it in the same
  // order with the same counts. Throws when a rank is gone. Strand only.
  virtual void gather(std::span<const float> own, std::span<const std::size_t> counts, std::span<float> all) = 0;
};

}  // namespace braid::model
