// The bytes of the key/value pool. Which block belongs to whom is the scheduler's business. Strand only.
#pragma once

#include "files/mapping.h"
#include "files/progress.h"
#include "kernels/thread_team.h"
#include "model/kv_layout.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

class KvArena {
 public:
  // `blocks` is at least 1.
  static Result<KvArena> create(const KvLayout& layout, std::int32_t blocks, files::HugePages pages = files::HugePages::kTransparent);

  const KvLayout& layout() const { return layout_; }
  std::int32_t blocks() const { return blocks_; }
  kernels::KvLayer layer(std::int32_t index) const;
  // All bytes of one block, layout().block_bytes() of them and nothing else: what copying, parking or restoring a block moves.
  std::span<std::byte> block(std::int32_t index) const;

  std::size_t bytes() const { return mapping_.size(); }
  void touch(std::size_t begin, std::size_t end) const { mapping_.prefault(begin, end); }  // the pages of these bytes

  // Touches every page, so that no step pays for it.
  void prefault(kernels::ThreadTeam& team, const files::Progress& progress) const;

 private:
  KvArena(const KvLayout& layout, std::int32_t blocks, files::Mapping mapping);
  KvLayout layout_;
  std::int32_t blocks_;
  files::Mapping mapping_;
};

}  // namespace braid::model
