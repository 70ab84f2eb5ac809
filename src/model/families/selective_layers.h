// Layers of Mamba-2 as GGUF files and folders describe them.
#pragma once

#include "model/families/folder_decoder.h"
#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <cstdint>
#include <string_view>

namespace braid::model {

// What all such layers of a model have in common.
SelectiveStateShape read_selective_sizes(GgufKeys& keys);

// Layer `index`. Its norm, if there is one, is over all values, or over each group's where the file has its weights so.
SelectiveStateShape selective_layer(GgufKeys& keys, SelectiveStateShape sizes, std::int32_t index, const ModelShape& model);

bool has_selective_layer(const GgufKeys& keys, std::int32_t index);

// How a folder's config.json calls what such layers need.
struct SelectiveNames {
  std::string_view heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";
  std::string_view state = "mamba_d_state";
  std::string_view groups = "mamba_n_groups";
  std::string_view taps = "mamba_d_conv";
};

struct SelectiveSize {
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t state = 1;
  std::int64_t groups = 1;

  std::int64_t inner() const { return heads * head_dim; }
};

// Keys and tensors, once those are named as in files but for "ssm_a", which is the logarithm of how fast. Where `grouped` is set, norms
// are over the values of each group.
SelectiveSize translate_selective(FolderReader& in, std::int32_t layers, const SelectiveNames& names = {}, bool grouped = false);

}  // namespace braid::model
