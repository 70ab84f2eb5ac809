// The bytes of the key/value pool. Which block belongs to whom is the scheduler's business. Strand only.
#pragma once

#include "files/mapping.h"
#include "files/progress.h"
#include "kernels/thread_team.h"
#include "model/kv_groups.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

class KvArena {
 public:
  // `blocks` is at least 1. Of a single layout: one group.
  static Result<KvArena> create(const KvGroups& groups, std::int32_t blocks, files::HugePages pages = files::HugePages::kTransparent);
  static Result<KvArena> create(const KvLayout& layout, std::int32_t blocks, files::HugePages pages = files::HugePages::kTransparent);

  const KvGroups& groups() const { return groups_; }
  std::size_t block_bytes() const { return block_bytes_; }
  std::int32_t blocks() const { return blocks_; }
  // In the blocks of the layer's group.
  kernels::KvLayer layer(std::int32_t index) const;
  std::int32_t group_of(std::int32_t layer) const { return groups_.places[static_cast<std::size_t>(layer)].group; }
  // Part of a layer's recurrent state, which lies in these blocks.
  float* state(const std::int32_t* blocks, std::size_t layer, std::int32_t part) const {
    const StateLayout::Place& place = groups_.states.place(layer, part);
    return reinterpret_cast<float*>(block(blocks[place.block]).data() + place.offset);
  }
  // All bytes of one block, block_bytes() of them and nothing else: what copying, parking or restoring a block moves.
  std::span<std::byte> block(std::int32_t index) const;

  // Nobody uses them until they are written to as a whole: their memory is the system's.
  void give_back(std::span<const std::int32_t> blocks) const;
  void give_back_all() const { mapping_.discard(0, mapping_.size()); }

  std::size_t bytes() const { return mapping_.size(); }
  std::size_t resident() const { return mapping_.resident(); }
  void touch(std::size_t begin, std::size_t end) const { mapping_.prefault(begin, end); }  // the pages of these bytes

  // Touches every page, so that no step pays for it.
  void prefault(kernels::ThreadTeam& team, const files::Progress& progress) const;

 private:
  KvArena(KvGroups groups, std::int32_t blocks, files::Mapping mapping);
  KvGroups groups_;
  std::size_t block_bytes_;
  std::int32_t blocks_;
  files::Mapping mapping_;
};

}  // namespace braid::model
