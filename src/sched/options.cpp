#include "sched/options.h"

#include "braid/engine_stats.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <utility>

namespace braid::sched {

std::optional<Error> find_fault(const SchedulerOptions& options) {
  const std::pair<const char*, std::int32_t> positive[] = {
      {"max-batch", options.max_batch},
      {"max-batch-tokens", options.max_batch_tokens},
      {"prefill-slice-ms", options.prefill_slice_ms},
      {"max-waiting", options.max_waiting},
      {"the context length", options.context_length},
      {"block-size", options.block_tokens},
      {"the number of KV blocks", options.blocks},
      {"the stream capacity", options.stream_capacity},
  };
  if (options.stall_park.count() < 0 || options.stall_drop < options.stall_park)
    return invalid_argument("stall-drop must not be shorter than stall-park");
  if (options.draft_tokens < 0) return invalid_argument("the number of drafted tokens must not be negative");
  if (options.state_blocks < 0 || options.state_interval < 0 || options.most_state_blocks < 0)
    return invalid_argument("a recurrent state's blocks and state-checkpoints must not be negative");
  if (options.priority_ageing.count() < 0) return invalid_argument("priority-ageing must not be negative");
  const auto is_windowed = [](const step::Visibility& visibility) { return visibility.window > 0; };
  if (options.groups.empty() || options.groups.size() > EngineStats::kMostGroups ||
      !std::ranges::is_partitioned(options.groups, std::not_fn(is_windowed)))
    return invalid_argument("a model has 1 to 16 groups of layers, those without a window first");
  for (const auto& [name, value] : positive)
    if (value < 1) return invalid_argument(fmt::format("{} must be at least 1, not {}", name, value));
  if (options.max_batch_tokens <= options.max_batch)
    return invalid_argument(
        fmt::format("max-batch-tokens ({}) must be larger than max-batch ({}), or a full batch leaves no room to prefill",
                    options.max_batch_tokens, options.max_batch));
  return std::nullopt;
}

}  // namespace braid::sched
