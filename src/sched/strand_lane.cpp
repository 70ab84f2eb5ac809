#include "sched/strand_lane.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace braid::sched {

StrandLane::StrandLane(ComputeStrand& strand, step::StepExecutor& executor, std::function<void()> on_return, std::function<void()> on_turn,
                       Steps steps)
    : strand_(strand), executor_(executor), on_return_(std::move(on_return)), on_turn_(std::move(on_turn)), kind_(steps) {
  strand_.join(*this);
}

StrandLane::~StrandLane() { strand_.leave(*this); }

bool StrandLane::take_turn() {
  if (posted_ - popped_ == most_out()) return false;
  return strand_.grant(*this);
}

void StrandLane::pass() { strand_.pass(*this); }

step::StepPlan& StrandLane::next_plan() {
  assert(posted_ - popped_ < most_out());
  step::StepPlan& plan = steps_[posted_ % steps_.size()].plan;
  plan.clear();
  plan.id = posted_;
  return plan;
}

void StrandLane::post() {
  assert(posted_ - popped_ < most_out());
  strand_.post(*this, steps_[posted_++ % steps_.size()]);
}

const Step* StrandLane::returned() const { return popped_ != returned_ ? &steps_[popped_ % steps_.size()] : nullptr; }

double StrandLane::come_back() { return steps_[returned_++ % steps_.size()].result.seconds; }

std::int32_t StrandLane::sharers() const { return std::max(1, strand_.arbiter_.active()); }

}  // namespace braid::sched
