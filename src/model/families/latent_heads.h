// The matrix that makes the keys and values of all heads from their latents, as the two by which latents are attended to.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace braid::model {

inline constexpr std::string_view kLatentHeads = "attn_kv_b";
inline constexpr std::string_view kLatentKeys = "attn_k_b";
inline constexpr std::string_view kLatentValues = "attn_v_b";

struct LatentHeads {
  std::int32_t count = 1;
  std::int32_t plain = 1;  // values of a key that do not rotate
  std::int32_t value = 1;
};

struct PartedHeads {
  files::GgufTensor keys;            // attn_k_b [heads, rank, plain]: what queries are multiplied by; its bytes are `key_bytes`
  files::GgufTensor values;          // attn_v_b [heads, value, rank]: rows of the whole
  std::vector<std::byte> key_bytes;  // float rows keep their type, those of a file's quantised types become Q8_0, coded ones F32; none
                                     // where there are no values
};

// `whole` is [heads * (plain + value), rank], of each head the rows of its keys before those of its values. kBadFile: it is not.
Result<PartedHeads> part_heads(files::GgufTensor whole, const LatentHeads& heads);

}  // namespace braid::model
