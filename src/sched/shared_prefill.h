// Computes what several sequences begin with once: who comes later waits for who computes it.
#pragma once

#include "cache/prefix_index.h"
#include "sched/rank.h"
#include "sched/sequence.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace braid::sched {

// Loop only. Knows by its prefix key the next block of every sequence that is being prefilled, its leader. A sequence that would compute
// the same block next follows: it is not admitted before the leader has all that both have in common, or gives up. It loses no time by
// that, because prefills are computed in order of rank and it only ever follows a better one.
class SharedPrefill {
 public:
  SharedPrefill(cache::PrefixIndex& index, std::int32_t block_tokens) : index_(index), block_tokens_(block_tokens) {}

  // True when `sequence`, whose cached prefix has been looked up, follows from now on.
  bool follow(Sequence& sequence);
  // It does not any more. Does nothing for others.
  void unfollow(Sequence& sequence);

  // `leader` is being prefilled, and positions [0, positions) are published. Appends to `woken` who has waited for these.
  void lead(Sequence& leader, std::int32_t positions, std::vector<Sequence*>& woken);
  // Its prefill is complete, or it has left the batch: all its followers are woken. Does nothing for others.
  void leave(Sequence& leader, std::vector<Sequence*>& woken);

 private:
  struct Leader {
    Sequence* sequence = nullptr;
    std::int32_t positions = 0;
  };
  struct KeyHash {
    std::size_t operator()(const cache::PrefixKey& key) const { return key.low; }
  };

  cache::PrefixKey next_key(const Sequence& sequence);
  void resign(Sequence& leader);
  void wake(Sequence& leader, std::int32_t positions, std::vector<Sequence*>& woken);

  cache::PrefixIndex& index_;
  std::int32_t block_tokens_;
  std::unordered_map<cache::PrefixKey, Leader, KeyHash> leaders_;
  std::map<std::pair<Rank, Rank>, Sequence*> followers_;  // by ranks of leader and follower
};

}  // namespace braid::sched
