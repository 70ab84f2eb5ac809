#include "ranks/rank_blocks.h"

#include <cstring>

namespace braid::ranks {

Result<RankBlocks> RankBlocks::of(const model::KvGroups& whole, const model::KvGroups& part, std::int32_t ranks) {
  const auto refuse = [](const char* what) { return Error{ErrorCode::kUnsupported, what, {}}; };
  if (whole.states.blocks() > 0) return refuse("recurrent states of ranks do not leave them");
  if (whole.count() != part.count()) return refuse("layers of ranks are stored together in another way than those of one process");
  for (std::int32_t group = 0; group < whole.count(); ++group) {
    const model::KvLayout &all = whole.layout(group), &some = part.layout(group);
    if (all.layers != some.layers || (some.kv_heads != all.kv_heads && some.kv_heads * ranks != all.kv_heads) ||
        all.head_bytes() != some.head_bytes())
      return refuse("layers of ranks are stored together in another way than those of one process");
  }
  return RankBlocks(whole, part, ranks);
}

void RankBlocks::put(std::int32_t rank, std::int32_t group, const std::byte* part, std::byte* whole) const {
  const model::KvLayout &all = whole_.layout(group), &some = part_.layout(group);
  if (!divides(group)) {
    if (rank == 0) std::memcpy(whole, part, some.block_bytes());
    return;
  }
  for (std::int32_t layer = 0; layer < all.layers; ++layer)
    std::memcpy(whole + static_cast<std::size_t>(layer) * all.layer_bytes() + static_cast<std::size_t>(rank) * some.layer_bytes(),
                part + static_cast<std::size_t>(layer) * some.layer_bytes(), some.layer_bytes());
}

void RankBlocks::take(std::int32_t rank, std::int32_t group, const std::byte* whole, std::byte* part) const {
  const model::KvLayout &all = whole_.layout(group), &some = part_.layout(group);
  if (!divides(group)) return void(std::memcpy(part, whole, some.block_bytes()));
  for (std::int32_t layer = 0; layer < all.layers; ++layer)
    std::memcpy(part + static_cast<std::size_t>(layer) * some.layer_bytes(),
                whole + static_cast<std::size_t>(layer) * all.layer_bytes() + static_cast<std::size_t>(rank) * some.layer_bytes(),
                some.layer_bytes());
}

}  // namespace braid::ranks
