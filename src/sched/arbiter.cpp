#include "sched/arbiter.h"

#include <algorithm>
#include <cassert>

namespace braid::sched {

Arbiter::Member Arbiter::join(bool goes_between) {
  const auto free = std::ranges::find(shares_, false, &Share::is_member);
  const auto member = static_cast<Member>(free - shares_.begin());
  if (free == shares_.end()) shares_.emplace_back();
  shares_[member] = {.goes_between = goes_between};
  return member;
}

void Arbiter::leave(Member member) { shares_[member] = {.is_member = false}; }

void Arbiter::want(Member member) {
  Share& share = shares_[member];
  if (!share.is_active) share.had = std::max(share.had, now_);
  share.is_active = true;
  share.wants = true;
}

void Arbiter::withdraw(Member member) {
  Share& share = shares_[member];
  share.wants = false;
  share.is_active = share.out > 0;
}

std::optional<Arbiter::Member> Arbiter::next() const {
  std::optional<Member> best;
  for (Member member = 0; member < shares_.size(); ++member) {
    if (!shares_[member].wants) continue;
    if (!best || shares_[member].with_those_out() < shares_[*best].with_those_out()) best = member;
  }
  return best;
}

bool Arbiter::may_go_between(Member member) const {
  const Share& own = shares_[member];
  const auto has_less = [&](const Share& share) { return share.is_active && share.with_those_out() < own.with_those_out(); };
  return own.goes_between && std::ranges::none_of(shares_, has_less);
}

std::optional<Arbiter::Member> Arbiter::next_between() const {
  for (Member member = 0; member < shares_.size(); ++member)
    if (shares_[member].wants && may_go_between(member)) return member;
  return std::nullopt;
}

void Arbiter::begin(Member member) {
  Share& share = shares_[member];
  now_ = std::max(now_, share.with_those_out());
  share.wants = false;
  ++share.out;
}

void Arbiter::end(Member member, double seconds) {
  Share& share = shares_[member];
  assert(share.out > 0);
  --share.out;
  share.had += seconds;
  share.last_seconds = seconds;
}

std::int32_t Arbiter::active() const { return static_cast<std::int32_t>(std::ranges::count(shares_, true, &Share::is_active)); }

}  // namespace braid::sched
