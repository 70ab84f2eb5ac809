// Where a token's keys and values lie in a KV head's part of a block (KvLayer). Elements of bf16 lie in pairs, as the tile products of
// bf16 take them: two dimensions of a key, two tokens' values of one dimension. Internal linkage, because wide tiers include it.
#pragma once

#include "kernels/kernel_table.h"

#include <cstdint>

namespace braid::kernels {

static constexpr std::int64_t kv_element_bytes(KvType type) { return type == KvType::kF32 ? 4 : type == KvType::kInt8 ? 1 : 2; }

// Elements side by side.
static constexpr std::int64_t kv_pair(KvType type) { return type == KvType::kBF16 ? 2 : 1; }

// In elements from the head's first key: dimension d of the token in `slot`.
static constexpr std::int64_t key_element(KvType type, std::int64_t block_tokens, std::int64_t slot, std::int64_t d) {
  const std::int64_t pair = kv_pair(type);
  return (d / pair * block_tokens + slot) * pair + d % pair;
}

// In elements from the head's first value.
static constexpr std::int64_t value_element(KvType type, std::int64_t head_dim, std::int64_t slot, std::int64_t d) {
  const std::int64_t pair = kv_pair(type);
  return (slot / pair * head_dim + d) * pair + slot % pair;
}

}  // namespace braid::kernels
