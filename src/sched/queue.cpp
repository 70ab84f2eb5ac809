#include "sched/queue.h"

#include <utility>

namespace braid::sched {

Sequence& Queue::enqueue(GenerationRequest request, std::int32_t answer_room, std::chrono::steady_clock::time_point arrival,
                         cache::BlockPool& pool, const Groups& groups) {
  const Rank rank(arrival, request.priority, ageing_, next_serial_++);
  const auto place = waiting_.try_emplace(rank, rank, std::move(request), answer_room, pool, groups).first;
  Sequence& sequence = place->second;
  sequence.home = &waiting_;
  sequence.self = place;
  sequence.arrival = arrival;
  try {
    if (!sequence.request->id.empty()) by_id_.emplace(sequence.request->id, &sequence);
  } catch (...) {
    waiting_.erase(place);
    throw;
  }
  return sequence;
}

Sequence* Queue::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() ? found->second : nullptr;
}

void Queue::forget(const Sequence& sequence) {
  if (!sequence.request->id.empty()) by_id_.erase(sequence.request->id);
}

// From the end, where most belong.
std::size_t Queue::place_of(std::int32_t priority, std::chrono::steady_clock::time_point arrival) const {
  const Rank rank(arrival, priority, ageing_, next_serial_);
  std::size_t behind = 0;
  for (auto at = waiting_.rbegin(); at != waiting_.rend() && at->first > rank; ++at) ++behind;
  return size() - behind + 1;
}

}  // namespace braid::sched
