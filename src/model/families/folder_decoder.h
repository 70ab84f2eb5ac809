// What the folders of decoders have in common: the keys of config.json that become those of a file.
#pragma once

#include "model/families/folder_reader.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace braid::model {

struct FolderSize {
  std::int32_t layers = 0;
  std::int32_t embedding = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
};

// Whether a family's code has fewer key heads than heads where config.json says so, or knows nothing of such a key.
enum class KeyHeads { kAsConfigured, kAsManyAsHeads };

// Sizes, the norms' epsilon, windows, whether the output is the embedding, the activation's name. Nothing about positions.
FolderSize translate_sizes(FolderReader& in, KeyHeads key_heads = KeyHeads::kAsConfigured);

// For families whose code reads the networks' width from no key that others have: that of their tensors, once these are named.
void take_feed_forward_length(FolderReader& in);

// Angles of rotated positions and how they are stretched (rope_parameters, or rope_theta and rope_scaling). `rotated`: of a head's values.
void translate_rope(FolderReader& in, const FolderSize& size, std::int32_t rotated);

// How many values of a head rotate, by partial_rotary_factor or one of its older names.
std::int32_t rotated_of(FolderReader& in, const FolderSize& size, double fallback = 1.0);

// Sizes, positions and the usual names; most families need no more.
// `rotated`: the part of a head that rotates where no key says it.
FolderSize translate_decoder(FolderReader& in, FolderReader::Names own = {}, double rotated = 1.0);

// For architectures whose files have rotated pairs side by side, of folders that have them apart.
// `rotated`: of a head's values, the first ones; 0: all.
void pair_rotated(FolderReader& in, const FolderSize& size, std::int32_t rotated = 0);

// Fails unless hidden_act, or what it is called otherwise, is one of `known` ("silu", "gelu", "gelu_tanh", "relu", "relu2", "xielu").
void require_activation(FolderReader& in, std::initializer_list<std::string_view> known);

// Fails where config.json has `key` set to something else than false, null or 0.
void refuse_option(FolderReader& in, std::string_view key);

}  // namespace braid::model
