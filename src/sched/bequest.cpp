#include "sched/bequest.h"

namespace braid::sched {

Bequest::Bequest(const cache::PrefixIndex& index, DiskTier& tier, std::int32_t groups, std::int32_t state_blocks)
    : index_(index), tier_(tier), groups_(groups), most_pieces_(static_cast<std::size_t>(groups + state_blocks)), places_(index.places()) {}

void Bequest::go_on() {
  for (; !has_ended() && tier_.store().free_buffers() >= most_pieces_; ++next_) {
    const auto [node, offset] = places_[next_];
    if (index_.handle(node, 0) == cache::PrefixIndex::kNoHandle) continue;  // it was forgotten meanwhile
    if (offset != cache::PrefixIndex::kWholeBlock) {
      if (!index_.state_at(node, offset).empty()) tier_.save_state(node, offset);
      continue;
    }
    for (std::int32_t group = 0; group < groups_; ++group)
      if (index_.handle(node, group) != cache::PrefixIndex::kNoHandle) tier_.save(node, group);
  }
}

}  // namespace braid::sched
