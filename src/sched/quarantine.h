// Whose fault it is that a step threw, found out by leaving rows out.
#pragma once

#include "sched/sequence.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace braid::sched {

// Loop only. Where the executor does not name a row (step::RowFailure), those are under suspicion who have not been in a step that came
// back since they came or were last suspected; if there are none, everybody in the step. Half of them, the last in rank, are held back
// and the step is computed again without them: when that comes back they are tried in turn. So each failure halves the suspects. Who is
// the only one gets a step of its own, while the others go on, and a second one if that throws; then it fails. So nobody fails for
// another's fault, and a fault that does not come back costs nobody his answer.
//
// While somebody is under suspicion nobody is admitted.
class Quarantine {
 public:
  // A step threw; `members`, not empty, is who was in it and still runs. Returns who is to fail, or null. Who is not, is to be rewound;
  // those it holds back (Sequence::held) only once they are let go.
  Sequence* accuse(std::span<Sequence* const> members);

  // Its row, which ends before position `end`, has come back. What had come back before the failure tells nothing: with a window it is
  // computed again.
  void clear(Sequence& sequence, std::int32_t end) {
    sequence.has_run = true;
    if (suspicions_.empty()) return;
    if (const auto found = suspicions_.find(&sequence); found != suspicions_.end() && end > found->second.doubted) suspicions_.erase(found);
  }
  // It has ended.
  void forget(const Sequence& sequence) { suspicions_.erase(&sequence); }

  // Who is to have the next step for itself, or null.
  Sequence* next_alone(SequenceMap& batch) const;

  bool is_active() const { return is_active_; }

  // Appends to `unheld` who is held back no longer: who is to be tried alone; and everybody, when nobody else who runs is under
  // suspicion, or by `force`.
  void unhold(SequenceMap& batch, bool force, std::vector<Sequence*>& unheld);

 private:
  struct Suspicion {
    std::int32_t doubted = 0;    // positions [0, doubted) had come back when it was last suspected: they prove nothing
    std::int32_t strikes = 0;    // steps in a row that it failed in
    bool accused_alone = false;  // has been in one that threw
  };

  bool is_active_ = false;
  std::unordered_map<const Sequence*, Suspicion> suspicions_;  // of those under suspicion
  std::vector<Sequence*> suspects_;                            // reused
};

}  // namespace braid::sched
