// Keys and values of a sequence as plain tensors, for tools that know nothing of blocks and groups: for each layer N that has any
//   layers.N.key, layers.N.value              [tokens, kv_heads, head_dim], in the pool's type (int8: codes)
//   layers.N.key_scale, layers.N.value_scale  [tokens, kv_heads, groups] F16, with int8 only
// of a pool of latents
//   layers.N.latent                           [tokens, kv_heads, head_dim]
//   layers.N.latent_scale                     [tokens, kv_heads, groups] F16, with int8 only
// and of each layer that has a recurrent state instead, at the end of the sequence's full blocks
//   layers.N.state.P                          [values] F32, for each part P of it
// Values are moved, never converted: what comes back is the same bits. Keys are rotated already.
#pragma once

#include "braid/result.h"
#include "files/safetensors.h"
#include "model/kv_groups.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// The tensors of `tokens` tokens, with their bytes.
class KvTensors {
 public:
  KvTensors(const KvGroups& groups, std::int64_t tokens);

  // What a group has of block number `index` of the sequence; of the last one, the tokens that there are.
  void put_block(std::int64_t index, std::int32_t group, std::span<const std::byte> block);

  // What lies in block number `part` of the state.
  void put_state(std::int32_t part, std::span<const std::byte> block);

  // Borrows: valid while this lives.
  files::SafeTensors contents() const;

 private:
  KvGroups groups_;
  std::int64_t tokens_;
  std::vector<std::vector<std::byte>> bytes_;   // [layers that have any, kinds]
  std::vector<std::vector<std::byte>> states_;  // [blocks of a state that have been put]
};

// Writes what a group has of block number `index`, which is full, to `block` (block_bytes; what is padding stays as it is). kBadFile: a
// tensor is missing, of another type or shape than the layout and number of tokens ask for, or holds bf16 values that are not finite.
Result<void> take_block(const files::SafeTensors& from, const KvGroups& groups, std::int32_t group, std::int64_t tokens, std::int64_t index,
                        std::span<std::byte> block);

// The same of block number `part` of the state; values that are not finite pass, as they do on their way through the pool.
Result<void> take_state(const files::SafeTensors& from, const KvGroups& groups, std::int32_t part, std::span<std::byte> block);

}  // namespace braid::model
