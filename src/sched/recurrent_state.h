// What a sequence knows of its recurrent state, whose blocks lie in its Holdings.
#pragma once

#include "cache/block_table.h"

#include <cstdint>
#include <list>
#include <optional>
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

  // Behind ends of turns before this one no copies are made, but behind the marked ones; nothing: nobody has looked yet.
  std::optional<std::int32_t> first_turn_end;
  std::vector<std::int32_t> marked_ends;  // in order

  // Copies that posted rows make when they have come so far, in order, until they are checkpoints.
  struct Copy {
    std::int32_t end = 0;  // positions that it stands for
    cache::BlockTable blocks;
  };
  std::list<Copy> copies;

  // A row that ends there is back, and may have been computed, whether the sequence took note of it or its step has failed.
  void came_back(std::int32_t end) { end_ = end; }
  // Whether it stands for just the positions that the sequence knows to be computed.
  bool stands_for(std::int32_t computed) const { return computed > 0 && end_ == computed; }

  // The sequence holds nothing any more.
  void clear() {
    source.clear();
    copies.clear();
    source_end = end_ = 0;
  }

 private:
  std::int32_t end_ = 0;
};

}  // namespace braid::sched
