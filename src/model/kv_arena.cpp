#include "model/kv_arena.h"

#include <algorithm>
#include <utility>

namespace braid::model {

KvArena::KvArena(const KvLayout& layout, std::int32_t blocks, files::Mapping mapping)
    : layout_(layout), blocks_(blocks), mapping_(std::move(mapping)) {}

Result<KvArena> KvArena::create(const KvLayout& layout, std::int32_t blocks, files::HugePages pages) {
  auto mapping = files::Mapping::reserve(static_cast<std::size_t>(blocks) * layout.block_bytes(), "KV cache", pages);
  if (!mapping) return mapping.error();
  return KvArena(layout, blocks, std::move(*mapping));
}

kernels::KvLayer KvArena::layer(std::int32_t index) const {
  return {.base = mapping_.data() + static_cast<std::size_t>(index) * layout_.layer_bytes(),
          .block_stride = layout_.block_bytes(),
          .head_stride = layout_.head_bytes(),
          .value_offset = layout_.half_bytes(),
          .scale_offset = 2 * layout_.half_bytes(),
          .block_tokens = layout_.block_tokens,
          .head_dim = layout_.head_dim,
          .kv_heads = layout_.kv_heads,
          .type = layout_.type};
}

std::span<std::byte> KvArena::block(std::int32_t index) const {
  return {mapping_.data() + static_cast<std::size_t>(index) * layout_.block_bytes(), layout_.block_bytes()};
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
