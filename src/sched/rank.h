// The order in which requests are served.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace braid::sched {

// Lower is served first. A request of priority p counts as if it had come p ageing periods later than it did. So within a class the
// first to come is the first, and one that has waited long enough goes before every better one that comes now: nothing starves. The
// order of two requests never changes, which is what lets a tree hold them.
struct Rank {
  std::int64_t due_ms = std::numeric_limits<std::int64_t>::min();
  std::uint64_t serial = 0;  // order of submission

  Rank(std::chrono::steady_clock::time_point arrival, std::int32_t priority, std::chrono::milliseconds ageing, std::uint64_t number)
      : due_ms(std::chrono::duration_cast<std::chrono::milliseconds>(arrival.time_since_epoch()).count() + priority * ageing.count()),
        serial(number) {}

  // Before all others, also those whose priority puts them before the clock's beginning, as on a machine that has just started.
  static Rank first() { return {}; }

  // In every comparison of a tree, and not inlined everywhere otherwise.
  [[gnu::always_inline]] auto operator<=>(const Rank&) const = default;

 private:
  Rank() = default;
};

}  // namespace braid::sched
