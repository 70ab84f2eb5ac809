// Layers that see alike and store alike form a group, whose blocks are its own: what one group gives up the others keep.
#pragma once

#include "model/kv_layout.h"
#include "model/state_layout.h"
#include "step/visibility.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::model {

inline constexpr std::int32_t kNoGroup = -1;

struct KvGroup {
  step::Visibility visibility;
  KvLayout layout;
};

// Where the keys and values of a layer are.
struct KvPlace {
  std::int32_t group = 0;  // kNoGroup: it has none
  std::int32_t index = 0;  // among the layers of its group
};

// All blocks of a pool have the same size, that of the largest group, or of a part of a recurrent state that is larger, so that each can serve every group. Many layers of one kind make
// several groups, so that little of a block is left over.
struct KvGroups {
  std::vector<KvGroup> groups;  // those that see everything first
  std::vector<KvPlace> places;  // by layer
  StateLayout states = {};      // of the recurrent layers, which are in no group
  std::size_t least_block_bytes = 0;

  // Of layers that store nothing: a group all the same, which tells how far sequences have come.
  static KvGroups none(std::size_t layers, std::int32_t block_tokens, kernels::KvType type);
  static KvGroups one(const KvLayout& layout, const step::Visibility& visibility = {});

  // Of these layers alone, in as many groups, which see the same.
  KvGroups of_layers(std::size_t begin, std::size_t end) const;

  std::int32_t count() const { return static_cast<std::int32_t>(groups.size()); }
  const KvLayout& layout(std::int32_t group) const { return groups[static_cast<std::size_t>(group)].layout; }
  std::int32_t block_tokens() const { return groups.front().layout.block_tokens; }
  std::size_t block_bytes() const;
  // Of a block in the hands of this group, the bytes that nothing is ever written to; and of all groups, the share that is written to.
  std::size_t unused_bytes(std::int32_t group) const { return block_bytes() - layout(group).block_bytes(); }
  std::vector<double> block_use() const;
  std::vector<step::Visibility> visibilities() const;
};

// What one layer stores and sees.
struct StoredLayer {
  step::Visibility visibility;
  std::int32_t kv_heads = 0;  // 0: nothing is stored
  std::int32_t head_dim = 0;
  bool latent = false;  // one copy is keys and values

  bool operator==(const StoredLayer&) const = default;
};

// The fewest groups of these layers, some of which store something, that leave at most an eighth of the bytes of all groups' blocks unused.
KvGroups group_layers(const std::vector<StoredLayer>& layers, std::int32_t block_tokens, kernels::KvType type);

}  // namespace braid::model
