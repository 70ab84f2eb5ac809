// How much of the memory the pool of one more model gets.
#pragma once

#include "app/serving/served_engine.h"
#include "app/serving/workshop.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::app {

struct MemoryRules {
  std::optional<std::uint64_t> total = {};  // bytes of all models; none: what the system leaves
  std::optional<std::uint64_t> pools = {};  // of all pools
};

// Bytes of what is loaded; weights that several use count once.
std::uint64_t taken_by(std::span<const EngineMemory> loaded);

// What their pools may take besides: what the system leaves, or the half of it, or what the rules leave.
std::uint64_t free_for_pools(const MemoryRules& rules, std::span<const EngineMemory> loaded, std::uint64_t left);

// Bytes of the smallest pool that is worth having: for one sequence of the asked context, or of 2,048 tokens.
std::uint64_t least_pool(const KvDemand& demand);

struct MemoryShare {
  std::optional<PoolBytes> pool;  // none: there is not enough
  std::uint64_t lacking = 0;      // bytes that have to come free for a fair share
  std::string lack;               // what is lacking, for an error
};

// `left`: bytes that the system leaves. A pool gets an equal part of what all pools may have together, as far as it is free, and not less
// than a sequence of the asked context, or of 2,048 tokens; it may come to have what it would have alone.
MemoryShare share_memory(const MemoryRules& rules, std::span<const EngineMemory> loaded, const ModelNeeds& needs, std::uint64_t left);

}  // namespace braid::app
