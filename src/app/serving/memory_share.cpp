#include "app/serving/memory_share.h"

#include "app/units.h"
#include "sched/groups.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace braid::app {
namespace {

constexpr std::int32_t kLeastContext = 2048;

}  // namespace

std::uint64_t least_pool(const KvDemand& demand) {
  const std::int32_t context = demand.asked_context.value_or(std::min(demand.model_context, kLeastContext));
  const sched::Groups groups(demand.groups, demand.block_tokens, demand.state_blocks);
  const auto places = (context + demand.block_tokens - 1) / demand.block_tokens;
  return static_cast<std::uint64_t>(groups.blocks_at_once(places)) * demand.block_bytes;
}

std::uint64_t taken_by(std::span<const EngineMemory> loaded) {
  std::set<const void*> counted;
  std::uint64_t bytes = 0;
  for (const EngineMemory& memory : loaded) {
    bytes += memory.own + memory.kv;
    if (counted.insert(memory.shelf).second) bytes += memory.weights;
  }
  return bytes;
}

std::uint64_t free_for_pools(const MemoryRules& rules, std::span<const EngineMemory> loaded, std::uint64_t left) {
  std::uint64_t pools = 0;
  for (const EngineMemory& memory : loaded) pools += memory.kv;
  if (rules.total) left = std::min(left, *rules.total - std::min(*rules.total, taken_by(loaded)));
  if (rules.pools) return std::min(left, *rules.pools - std::min(*rules.pools, pools));
  return rules.total ? left : left / 2;
}

MemoryShare share_memory(const MemoryRules& rules, std::span<const EngineMemory> loaded, const ModelNeeds& needs, std::uint64_t left) {
  std::uint64_t pools = 0;
  for (const EngineMemory& memory : loaded) pools += memory.kv;
  std::uint64_t alone = std::min(left + taken_by(loaded), rules.total.value_or(std::numeric_limits<std::uint64_t>::max()));
  alone -= std::min(alone, needs.fixed);
  if (rules.total) left = std::min(left, *rules.total - std::min(*rules.total, taken_by(loaded)));
  const std::uint64_t least = needs.has_pool ? least_pool(needs.kv) : 0;
  const std::uint64_t available = free_for_pools(rules, loaded, left - std::min(left, needs.fixed));
  const std::uint64_t fair = (pools + available) / (loaded.size() + 1);
  const std::uint64_t wanted = needs.has_pool ? std::clamp(fair, least, std::max(least, most_usable(needs.kv))) : 0;
  MemoryShare share;
  if (needs.fixed > left) share.lacking = needs.fixed - left;
  if (wanted > available) share.lacking += wanted - available;
  if (needs.fixed <= left && least <= available) {
    share.pool = {.first = std::min(wanted, available), .most = free_for_pools(rules, {}, alone)};
  } else {
    share.lack = fmt::format("it needs {} and {} for one sequence, and {} are left", format_size(needs.fixed), format_size(least),
                             format_size(left));
  }
  return share;
}

}  // namespace braid::app
