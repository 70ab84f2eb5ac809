#include "sched/quarantine.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace braid::sched {

namespace {

// Steps in a row that a sequence may have failed in. Halving a batch takes far fewer; this bounds what chance could do.
constexpr std::int32_t kMostStrikes = 64;

}  // namespace

Sequence* Quarantine::accuse(std::span<Sequence* const> members) {
  assert(!members.empty());
  is_active_ = true;
  suspects_.clear();
  const auto is_unproven = [this](const Sequence* member) { return !member->has_run || suspicions_.contains(member); };
  std::ranges::copy_if(members, std::back_inserter(suspects_), is_unproven);
  if (suspects_.empty()) suspects_.assign(members.begin(), members.end());
  for (Sequence* suspect : suspects_) {
    Suspicion& suspicion = suspicions_[suspect];
    suspicion.doubted = suspect->progress.computed();
    if (++suspicion.strikes > kMostStrikes) return suspect;
  }
  if (suspects_.size() == 1) {
    Sequence& only = *suspects_.front();
    Suspicion& suspicion = suspicions_[&only];
    if (members.size() == 1 && std::exchange(suspicion.accused_alone, true)) return &only;
    only.alone_after = suspicion.doubted;
    only.held = true;
    return nullptr;
  }
  std::ranges::sort(suspects_, {}, &Sequence::rank);
  for (std::size_t i = (suspects_.size() + 1) / 2; i < suspects_.size(); ++i) suspects_[i]->held = true;
  return nullptr;
}

Sequence* Quarantine::next_alone(SequenceMap& batch) const {
  if (!is_active_) return nullptr;
  const auto is_next = [](const auto& entry) {
    const Sequence& sequence = entry.second;
    return sequence.alone_after && sequence.phase == SequencePhase::kPrefill && sequence.progress.planned() >= *sequence.alone_after;
  };
  const auto found = std::ranges::find_if(batch, is_next);
  return found != batch.end() ? &found->second : nullptr;
}

void Quarantine::unhold(SequenceMap& batch, bool force, std::vector<Sequence*>& unheld) {
  if (!is_active_) return;
  const auto runs_suspected = [this](const auto& entry) {
    const Sequence& sequence = entry.second;
    return !sequence.is_leaving() && !sequence.held && suspicions_.contains(&sequence);
  };
  const bool has_suspect = std::ranges::any_of(batch, runs_suspected);
  is_active_ = has_suspect;
  for (auto& [rank, sequence] : batch) {
    if (!sequence.held || sequence.is_leaving()) continue;
    is_active_ = true;
    if (has_suspect && !sequence.alone_after && !force) continue;
    sequence.held = false;
    unheld.push_back(&sequence);
  }
}

}  // namespace braid::sched
