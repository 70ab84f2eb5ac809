#include "sched/shared_prefill.h"

#include <algorithm>
#include <limits>

namespace braid::sched {

// Of its first block that is not published, or of what there is of it.
cache::PrefixKey SharedPrefill::next_key(const Sequence& sequence) {
  const auto begin = static_cast<std::size_t>(sequence.progress.published_positions());
  return index_.key_after(sequence.last_published(), sequence.view(), begin);
}

bool SharedPrefill::follow(Sequence& sequence) {
  const auto found = leaders_.find(next_key(sequence));
  if (found == leaders_.end()) return false;
  const auto& [leader, positions] = found->second;
  if (leader->rank > sequence.rank) return false;
  const std::int32_t common = cache::common_length(sequence.view(), leader->view());
  const std::int32_t usable = std::min(common, sequence.known() - 1);  // the last token is everybody's own to compute
  const bool has_all_of_it = common == leader->known();
  const std::int32_t awaited = has_all_of_it ? usable : usable / block_tokens_ * block_tokens_;
  if (awaited <= positions) return false;
  sequence.leader = leader;
  sequence.awaited = awaited;
  followers_.emplace(std::pair(leader->rank, sequence.rank), &sequence);
  return true;
}

void SharedPrefill::unfollow(Sequence& sequence) {
  if (sequence.leader == nullptr) return;
  followers_.erase({sequence.leader->rank, sequence.rank});
  sequence.leader = nullptr;
}

void SharedPrefill::lead(Sequence& leader, std::int32_t positions, std::vector<Sequence*>& woken) {
  resign(leader);
  leader.leads = next_key(leader);
  leaders_.try_emplace(*leader.leads, Leader{&leader, positions});
  wake(leader, positions, woken);
}

void SharedPrefill::leave(Sequence& leader, std::vector<Sequence*>& woken) {
  if (!leader.leads) return;
  resign(leader);
  wake(leader, std::numeric_limits<std::int32_t>::max(), woken);
}

void SharedPrefill::resign(Sequence& leader) {
  if (!leader.leads) return;
  const auto found = leaders_.find(*leader.leads);
  if (found != leaders_.end() && found->second.sequence == &leader) leaders_.erase(found);
  leader.leads.reset();
}

void SharedPrefill::wake(Sequence& leader, std::int32_t positions, std::vector<Sequence*>& woken) {
  for (auto at = followers_.lower_bound({leader.rank, Rank::first()}); at != followers_.end() && at->first.first == leader.rank;) {
    Sequence& follower = *(at++)->second;
    if (follower.awaited > positions) continue;
    unfollow(follower);
    woken.push_back(&follower);
  }
}

}  // namespace braid::sched
