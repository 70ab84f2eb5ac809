// The shape of the paged key/value pool. A block holds `block_tokens` positions of one sequence, of all layers of its group (kv_groups.h):
//   block = [layers][kv_heads] of { keys [head_dim, block_tokens], values [block_tokens, head_dim] }
// with bf16 in pairs (kernels/kv_order.h), and with int8 the scales of the keys and of the values after them, [groups, block_tokens] f16 each;
// where the keys are the values too (latents), values and their scales alone:
//   block = [layers] of { latents [block_tokens, head_dim] }
// So a block is one run of bytes (KvArena::block): it can be copied, shared, written to disk and read back as a whole, in every
// type. Its bytes depend on the layout's fields and on the tokens it holds, not on the tier that wrote them.
#pragma once

#include "kernels/kv_order.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

struct KvLayout {
  std::int32_t layers = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t block_tokens = 16;  // 8, 16, 32 or 64
  kernels::KvType type = kernels::KvType::kF16;
  bool latent = false;

  // Of each token: keys and values, or one for both.
  std::size_t copies() const { return latent ? 1 : 2; }
  std::size_t value_bytes() const { return static_cast<std::size_t>(kernels::kv_element_bytes(type)); }
  // Keys, or values, of one head in one block; a whole number of cache lines, for int8 of half ones.
  std::size_t half_bytes() const {
    const auto pair = static_cast<std::size_t>(kernels::kv_pair(type));
    const std::size_t dims = (static_cast<std::size_t>(head_dim) + pair - 1) / pair * pair;
    const std::size_t bytes = static_cast<std::size_t>(block_tokens) * dims * value_bytes();
    const std::size_t unit = type == kernels::KvType::kInt8 ? 32 : 64;
    return (bytes + unit - 1) / unit * unit;
  }
  // Scales of the keys and values of one head in one block; a whole number of halves of cache lines.
  std::size_t scale_bytes() const {
    if (type != kernels::KvType::kInt8) return 0;
    const std::int32_t groups = (head_dim + kernels::kKvGroup - 1) / kernels::kKvGroup;
    return (copies() * static_cast<std::size_t>(groups * block_tokens) * 2 + 31) / 32 * 32;
  }
  std::size_t head_bytes() const { return copies() * half_bytes() + scale_bytes(); }
  std::size_t layer_bytes() const { return static_cast<std::size_t>(kv_heads) * head_bytes(); }
  std::size_t block_bytes() const { return static_cast<std::size_t>(layers) * layer_bytes(); }

  // Calls use(offset, bytes) for each part of a block that tokens write to, in order. What lies between is padding and may hold anything.
  template <class Use>
  void for_written(Use&& use) const {
    const auto pair = static_cast<std::size_t>(kernels::kv_pair(type));
    const std::size_t tokens = static_cast<std::size_t>(block_tokens);
    const std::size_t half = tokens * ((static_cast<std::size_t>(head_dim) + pair - 1) / pair * pair) * value_bytes();
    const auto groups = static_cast<std::size_t>((head_dim + kernels::kKvGroup - 1) / kernels::kKvGroup);
    const std::size_t scales = type == kernels::KvType::kInt8 ? copies() * groups * tokens * 2 : 0;
    if (half == half_bytes() && scales == scale_bytes()) return use(std::size_t{0}, block_bytes());
    for (std::size_t head = 0; head < block_bytes(); head += head_bytes()) {
      for (std::size_t copy = 0; copy < copies(); ++copy) use(head + copy * half_bytes(), half);
      if (scales > 0) use(head + copies() * half_bytes(), scales);
    }
  }
};

}  // namespace braid::model
