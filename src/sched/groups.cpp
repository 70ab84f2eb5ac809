#include "sched/groups.h"

#include <algorithm>
#include <limits>

namespace braid::sched {

std::int32_t blocks_in_window(const step::Visibility& visibility, std::int32_t block_tokens) {
  const auto [window, sink] = visibility;
  if (window == 0) return 0;
  const auto blocks_for = [&](std::int32_t positions) { return (positions + block_tokens - 1) / block_tokens; };
  return blocks_for(sink) + blocks_for(window) + 2;  // the window begins and ends within a block
}

Groups::Groups(std::span<const step::Visibility> visible, std::int32_t block_tokens, std::int32_t state_blocks)
    : visible_(visible.begin(), visible.end()), block_tokens_(block_tokens), state_blocks_(state_blocks) {
  for (const step::Visibility& visibility : visible_) {
    window_blocks_.push_back(blocks_in_window(visibility, block_tokens));
    full_ += visibility.window == 0 ? 1 : 0;
  }
}

std::int64_t Groups::blocks_at_once(std::int64_t places) const {
  std::int64_t blocks = state_blocks_ + full_ * places;
  for (std::int32_t group = full_; group < count(); ++group) blocks += std::min<std::int64_t>(places, window_blocks(group));
  return blocks;
}

std::int64_t Groups::most_places(std::int64_t blocks) const {
  constexpr std::int64_t kAnyLength = std::numeric_limits<std::int64_t>::max() / 64;  // times a block's tokens it is a number still
  if (all_windows() && blocks_at_once(kAnyLength) <= blocks) return kAnyLength;
  std::int64_t enough = 0;
  for (std::int64_t more = blocks + 1; more - enough > 1;) {
    const std::int64_t middle = enough + (more - enough) / 2;
    (blocks_at_once(middle) <= blocks ? enough : more) = middle;
  }
  return enough;
}

}  // namespace braid::sched
