// Blocks of the pool in the layout of one rank, which records outside of it have, and what each of several ranks has of them.
#pragma once

#include "braid/result.h"
#include "model/kv_groups.h"

#include <cstddef>
#include <cstdint>

namespace braid::ranks {

class RankBlocks {
 public:
  // The groups of one rank, and of each of several. kUnsupported: these store other layers together, or recurrent states.
  static Result<RankBlocks> of(const model::KvGroups& whole, const model::KvGroups& part, std::int32_t ranks);

  std::int32_t ranks() const { return ranks_; }
  std::size_t record_bytes() const { return whole_.block_bytes(); }  // of any group's block, what it leaves over included
  std::size_t whole_bytes(std::int32_t group) const { return whole_.layout(group).block_bytes(); }
  std::size_t part_bytes(std::int32_t group) const { return part_.layout(group).block_bytes(); }

  // part: [part_bytes(group)] of a rank; whole: [whole_bytes(group)]. What all ranks have is the first one's.
  void put(std::int32_t rank, std::int32_t group, const std::byte* part, std::byte* whole) const;
  void take(std::int32_t rank, std::int32_t group, const std::byte* whole, std::byte* part) const;

 private:
  RankBlocks(const model::KvGroups& whole, const model::KvGroups& part, std::int32_t ranks) : whole_(whole), part_(part), ranks_(ranks) {}

  bool divides(std::int32_t group) const { return part_.layout(group).kv_heads != whole_.layout(group).kv_heads; }

  const model::KvGroups whole_, part_;
  const std::int32_t ranks_;
};

}  // namespace braid::ranks
