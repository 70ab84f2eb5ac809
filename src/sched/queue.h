// Who has been submitted and does not run.
#pragma once

#include "braid/generation_request.h"
#include "cache/block_pool.h"
#include "sched/sequence.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace braid::sched {

// Gives every sequence its rank and knows it by its id until it is removed, wherever it is. Loop only.
class Queue {
 public:
  explicit Queue(std::chrono::milliseconds ageing) : ageing_(ageing) {}

  // A new one; pool and groups outlive it. `answer_room`: its max_tokens, cut to what fits. When memory runs out (std::bad_alloc) nothing has
  // changed.
  Sequence& enqueue(GenerationRequest request, std::int32_t answer_room, std::chrono::steady_clock::time_point arrival,
                    cache::BlockPool& pool, const Groups& groups);

  // By GenerationRequest::id; null when unknown.
  Sequence* find(std::string_view id) const;
  // Its id may be used again.
  void forget(const Sequence& sequence);

  std::size_t size() const { return waiting_.size() + following_.size(); }
  // Where one that came now would stand, from 1.
  std::size_t place_of(std::int32_t priority, std::chrono::steady_clock::time_point arrival) const;

  SequenceMap& waiting() { return waiting_; }
  const SequenceMap& waiting() const { return waiting_; }
  // Those that wait for somebody who computes what they begin with (SharedPrefill).
  SequenceMap& following() { return following_; }
  const SequenceMap& following() const { return following_; }

 private:
  std::chrono::milliseconds ageing_;
  SequenceMap waiting_;
  SequenceMap following_;
  std::unordered_map<std::string_view, Sequence*> by_id_;
  std::uint64_t next_serial_ = 0;
};

}  // namespace braid::sched
