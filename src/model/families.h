// The members of the Llama family. A member is a description over shared blocks: adding one means adding a line to the table.
#pragma once

#include <string>
#include <string_view>

namespace braid::model {

enum class Presence { kAbsent, kOptional, kRequired };

struct Family {
  std::string_view architecture;  // general.architecture
  bool interleaved_rope = false;  // rotated pairs are (2i, 2i + 1); otherwise (i, i + rotated / 2)
  Presence qkv_bias = Presence::kAbsent;
  Presence output_bias = Presence::kAbsent;  // of the attention's output projection
  bool query_key_norm = false;               // RMSNorm over each query and key head before rotation
};

// Null when this build does not know the architecture.
const Family* find_family(std::string_view architecture);

// "llama, qwen2, qwen3", for messages.
std::string known_architectures();

}  // namespace braid::model
