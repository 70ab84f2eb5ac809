// What a sequence knows of its recurrent state, whose blocks lie in its Holdings.
#pragma once

#include "cache/block_table.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace braid::sched {

// Rows carry the state on in place, and nothing goes back in it: where a step has failed it is lost, and the sequence begins anew from a
// checkpoint of the prefix cache. Loop only.
class RecurrentState {
 public:
  explicit RecurrentState(cache::BlockPool& pool) : source(pool) {}

  // The checkpoint that the sequence begins with and its first row copies, and the positions that it stands for; empty: none.
  cache::BlockTable source;
  std::int32_t source_end = 0;
  // It holds so many leading blocks in whose place a state is awaited from disk that is further on; 0: none is. Until that has come nothing of them
  // counts behind source_end.
  std::int32_t awaits_behind = 0;
  bool has_asked_disk = false;  // for such a state, since it last began to compute

  // Behind ends of turns before this one no copies are made, but behind the marked ones; nothing: nobody has looked yet.
  std::optional<std::int32_t> first_turn_end;
  std::vector<std::int32_t> marked_ends;  // in order

  // Copies that posted rows make when they have come so far, in order, until they are checkpoints.
  static constexpr std::int32_t kUnknown = std::numeric_limits<std::int32_t>::max();
  struct Copy {
    std::int32_t end = 0;  // positions that it stands for; kUnknown until a row that verifies is back, behind which it is made
    cache::BlockTable blocks;
  };
  std::list<Copy> copies;
  std::int32_t copied_at = 0;  // where the last row that verifies with such a copy began, or the first one without; 0: there was none

  // Checkpoints that it has come by, in order, or that are before the one that it is to begin with. It holds their states so that they are
  // there when its blocks are taken, until somebody else lacks theirs.
  struct Checkpoint {
    std::int32_t end = 0;  // positions that it stands for
    cache::BlockTable blocks;
  };
  std::list<Checkpoint> kept;
  static constexpr std::size_t kLeastKept = 2;  // one may end where its last blocks do, and go with the first of them
  // Up to here there is room for its positions and a state beside all that the others who run may ever take: from the last checkpoint that ends
  // there it can always go on, so nothing before that is of use to it.
  std::int32_t surely_fits = 0;
  const Checkpoint* last_that_fits() const {
    const Checkpoint* last = nullptr;
    for (const Checkpoint& checkpoint : kept) last = checkpoint.end <= surely_fits ? &checkpoint : last;
    return last;
  }
  bool has_to_spare() const { return kept.size() > (last_that_fits() != nullptr ? 1U : 0U); }

  // One more, behind all others, unless it is empty. Where they take more than `most` blocks together, others go but for two.
  void keep(Checkpoint checkpoint, std::int32_t most) {
    const std::int32_t size = checkpoint.blocks.size();
    if (size == 0) return;
    while (kept.size() >= kLeastKept && size * (static_cast<std::int32_t>(kept.size()) + 1) > most)
      kept.erase(least_useful(checkpoint.end));
    kept.push_back(std::move(checkpoint));
  }
  // One that lies before the others. False: there are two, and one more would be more than `most` blocks.
  bool keep_earlier(Checkpoint checkpoint, std::int32_t most) {
    kept.push_front(std::move(checkpoint));
    return kept.size() < kLeastKept || kept.front().blocks.size() * (static_cast<std::int32_t>(kept.size()) + 1) <= most;
  }
  // Of those that there are, of which there is one, when it has come to `end`. The first one stays as long as it is the last that surely fits or,
  // where none does, as long as it ends in the second half.
  std::list<Checkpoint>::iterator least_useful(std::int32_t end) {
    const auto second = std::next(kept.begin());
    if (second == kept.end()) return kept.begin();
    const std::int32_t first_end = kept.front().end;
    const bool stays = first_end <= surely_fits ? second->end > surely_fits : 2 * first_end >= end;
    return stays ? second : kept.begin();
  }
  // Of one whose blocks come free with it, in exchange for one at `end`. False: there is none, others hold them all, or just it surely fits.
  bool let_go_of_own(std::int32_t end) {
    if (kept.empty()) return false;
    const Checkpoint* const fitting = end > surely_fits ? last_that_fits() : nullptr;
    const auto may_go = [fitting](const Checkpoint& one) { return &one != fitting && one.blocks.pool().references(one.blocks[0]) == 1; };
    auto gone = least_useful(end);
    if (!may_go(*gone)) gone = std::ranges::find_if(kept, may_go);
    if (gone == kept.end()) return false;
    kept.erase(gone);
    return true;
  }

  // A row that ends there is back, and may have been computed, whether the sequence took note of it or its step has failed. kUnknown: where it
  // ends nobody knows.
  void came_back(std::int32_t end) { end_ = end; }
  // The first copy whose end is not known was made there; kUnknown: it was not.
  void copied(std::int32_t end) {
    const auto made = std::ranges::find(copies, kUnknown, &Copy::end);
    if (made == copies.end()) return;
    made->end = end;
    if (end == kUnknown) copies.erase(made);
  }
  // Whether it stands for just the positions that the sequence knows to be computed.
  bool stands_for(std::int32_t computed) const { return computed > 0 && end_ == computed; }

  // The sequence holds nothing any more.
  void clear() {
    source.clear();
    copies.clear();
    kept.clear();
    source_end = awaits_behind = end_ = copied_at = 0;
  }

 private:
  std::int32_t end_ = 0;
};

}  // namespace braid::sched
