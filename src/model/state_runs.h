// The tokens of a sequence in a pass, cut where a copy of its state is wanted.
#pragma once

#include "step/pass.h"

#include <algorithm>
#include <cstdint>

namespace braid::model {

inline constexpr std::int32_t kMostRun = 64;

// run(first, count) for at most kMostRun tokens at a time, the first one counted from the sequence's; snapshot(blocks) after those behind
// which the state is wanted. Without guesses.
template <class Run, class Snapshot>
void for_state_runs(const step::Pass& pass, const step::PassSequence& sequence, const Run& run, const Snapshot& snapshot) {
  std::uint32_t next = sequence.snapshot_begin;
  const std::uint32_t last = next + sequence.snapshot_count;
  const std::int32_t count = sequence.count - sequence.drafted;
  for (std::int32_t first = 0; first < count;) {
    std::int32_t end = std::min(count, first + kMostRun);
    if (next < last) end = std::min(end, pass.snapshots[next].count);
    run(first, end - first);
    if (next < last && pass.snapshots[next].count == end) snapshot(pass.snapshots[next++].state);
    first = end;
  }
}

// The same for the guesses, which come after those.
template <class Run>
void for_drafted_runs(const step::PassSequence& sequence, const Run& run) {
  for (std::int32_t first = sequence.count - sequence.drafted; first < sequence.count; first += kMostRun)
    run(first, std::min(kMostRun, sequence.count - first));
}

}  // namespace braid::model
