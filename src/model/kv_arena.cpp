#include "model/kv_arena.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace braid::model {

KvArena::KvArena(KvGroups groups, std::int32_t blocks, files::Mapping mapping)
    : groups_(std::move(groups)), block_bytes_(groups_.block_bytes()), blocks_(blocks), mapping_(std::move(mapping)) {}

Result<KvArena> KvArena::create(const KvGroups& groups, std::int32_t blocks, files::HugePages pages) {
  auto mapping = files::Mapping::reserve(static_cast<std::size_t>(blocks) * groups.block_bytes(), "KV cache", pages);
  if (!mapping) return mapping.error();
  return KvArena(groups, blocks, std::move(*mapping));
}

Result<KvArena> KvArena::create(const KvLayout& layout, std::int32_t blocks, files::HugePages pages) {
  return create(KvGroups::one(layout), blocks, pages);
}

kernels::KvLayer KvArena::layer(std::int32_t index) const {
  const KvPlace place = groups_.places[static_cast<std::size_t>(index)];
  const KvLayout& layout = groups_.layout(place.group);
  return {.base = mapping_.data() + static_cast<std::size_t>(place.index) * layout.layer_bytes(),
          .block_stride = block_bytes_,
          .head_stride = layout.head_bytes(),
          .value_offset = (layout.copies() - 1) * layout.half_bytes(),
          .scale_offset = layout.copies() * layout.half_bytes(),
          .block_tokens = layout.block_tokens,
          .head_dim = layout.head_dim,
          .kv_heads = layout.kv_heads,
          .type = layout.type,
          .latent = layout.latent};
}

std::span<std::byte> KvArena::block(std::int32_t index) const {
  return {mapping_.data() + static_cast<std::size_t>(index) * block_bytes_, block_bytes_};
}

// Neighbours together: a page may belong to two of them.
void KvArena::give_back(std::span<const std::int32_t> blocks) const {
  std::vector<std::int32_t> sorted(blocks.begin(), blocks.end());
  std::ranges::sort(sorted);
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = last) {
    for (last = first + 1; last < sorted.size() && sorted[last] == sorted[last - 1] + 1;) ++last;
    mapping_.discard(static_cast<std::size_t>(sorted[first]) * block_bytes_, static_cast<std::size_t>(sorted[last - 1] + 1) * block_bytes_);
  }
}

void KvArena::prefault(kernels::ThreadTeam& team, const files::Progress& progress) const {
  constexpr std::size_t kStride = std::size_t{256} << 20;  // between two reports
  constexpr std::size_t kChunk = std::size_t{8} << 20;
  for (std::size_t begin = 0; begin < mapping_.size(); begin += kStride) {
    const std::size_t end = std::min(mapping_.size(), begin + kStride);
    team.for_chunks(static_cast<std::int64_t>(end - begin), kChunk, [&](std::int64_t from, std::int64_t to, int) {
      mapping_.prefault(begin + static_cast<std::size_t>(from), begin + static_cast<std::size_t>(to));
    });
    if (progress) progress("KV cache", end, mapping_.size());
  }
}

}  // namespace braid::model
