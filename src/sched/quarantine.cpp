#include "sched/quarantine.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace braid::sched {

namespace {

// Steps in a row that a sequence may have failed in. Halving a batch takes far fewer; this bounds what chance could do.
constexpr std::int32_t kMostStrikes = 64;

}  // namespace

Sequence* Quarantine::accuse(std::span<Sequence* const> members) {
  assert(!members.empty());
  is_active_ = true;
  suspects_.clear();
  std::ranges::copy_if(members, std::back_inserter(suspects_), [](const Sequence* member) { return !member->proven; });
  if (suspects_.empty()) suspects_.assign(members.begin(), members.end());
  for (Sequence* suspect : suspects_) {
    suspect->proven = false;
    if (++suspect->strikes > kMostStrikes) return suspect;
  }
  if (suspects_.size() == 1) {
    Sequence& only = *suspects_.front();
    if (only.accused_alone) return &only;
    only.accused_alone = true;
    only.held = members.size() > 1;
    return nullptr;
  }
  std::ranges::sort(suspects_, {}, &Sequence::rank);
  for (std::size_t i = (suspects_.size() + 1) / 2; i < suspects_.size(); ++i) suspects_[i]->held = true;
  return nullptr;
}

void Quarantine::release(SequenceMap& batch, bool force, std::vector<Sequence*>& released) {
  if (!is_active_) return;
  bool has_held = false;
  bool has_suspect = false;
  for (const auto& [rank, sequence] : batch) {
    if (sequence.is_leaving()) continue;
    has_held = has_held || sequence.held;
    has_suspect = has_suspect || (!sequence.held && !sequence.proven);
  }
  if (!has_held && !has_suspect) is_active_ = false;
  if (!has_held || (has_suspect && !force)) return;
  for (auto& [rank, sequence] : batch) {
    if (!sequence.held) continue;
    sequence.held = false;
    if (!sequence.is_leaving()) released.push_back(&sequence);
  }
}

}  // namespace braid::sched
