// From a folder's config.json, or the metadata of an mmproj file, to the shape of a tower.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/families/folder_config.h"
#include "model/images/tower_shape.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

// Whether the config.json says that there is a tower, of whatever kind.
bool describes_tower(std::string_view config);
// Whether the GGUF file is one: llama.cpp's "clip".
bool is_tower_file(const files::GgufFile& file);

// kUnsupported: of a kind that this build does not know, or with an option that it lacks; kBadFile with the key or tensor.
Result<TowerShape> read_tower_folder(const files::HfFolder& folder);
Result<TowerShape> read_tower_gguf(const files::GgufFile& file);

// What must hold of every tower before its weights are looked at.
void check_tower(const TowerShape& tower, const std::function<void(ErrorCode, const std::string&)>& fail);

// What families read. Failures stay in the configs' `error`.
struct TowerFolder {
  FolderConfig whole;   // the wrapper's
  FolderConfig text;    // the language model's part
  FolderConfig vision;  // the tower's part
  const std::map<std::string, files::SafeTensor>& tensors;

  bool has(const std::string& name) const { return tensors.contains(name); }
  // What stands before `ending` in the first tensor's name that ends so; a failure: there is none.
  std::string prefix_of(std::string_view ending);
};

// Families. One file each.
TowerShape llava_tower(TowerFolder& in);  // LLaVA 1.5, and what else has its connector: Pixtral's first
TowerShape llava_next_tower(TowerFolder& in);
TowerShape llava_onevision_tower(TowerFolder& in);
TowerShape gemma3_tower(TowerFolder& in);
TowerShape gemma4_tower(TowerFolder& in);
TowerShape idefics3_tower(TowerFolder& in);  // also SmolVLM
TowerShape internvl_tower(TowerFolder& in);
TowerShape internvl_chat_tower(TowerFolder& in);  // as its own code has it
TowerShape kimi_k25_tower(TowerFolder& in);
TowerShape lfm2_vl_tower(TowerFolder& in);
TowerShape minicpm_v_tower(TowerFolder& in);            // 4.6
TowerShape minicpm_v_resampler_tower(TowerFolder& in);  // those before it
TowerShape mistral3_tower(TowerFolder& in);
TowerShape qwen2_vl_tower(TowerFolder& in);
TowerShape qwen25_vl_tower(TowerFolder& in);
TowerShape qwen3_vl_tower(TowerFolder& in);
TowerShape qwen35_tower(TowerFolder& in);

// Towers that several families have, without connectors.
TowerShape clip_tower(TowerFolder& in);    // all but the last layers that nobody reads (vision_feature_layer)
TowerShape siglip_tower(TowerFolder& in);  // all layers, and the norm behind them
TowerShape pixtral_tower(TowerFolder& in);
// CLIP's and SigLIP's layers, the first so many.
void add_vit_layers(TowerShape& tower, TowerFolder& in, const std::string& prefix, std::int64_t layers);
// Heads, width and whatever else all towers have in their configuration, by their usual names.
struct TowerDefaults {
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::string_view activation = "gelu_pytorch_tanh";
  double epsilon = 1e-6;
  std::int64_t patch = 16;
  std::string_view width_key = "hidden_size";
};
TowerShape common_tower(TowerFolder& in, const TowerDefaults& defaults);
// The side of the only size of image that the tower reads, in patches.
std::int64_t patches_of_side(const TowerShape& tower, TowerFolder& in, std::int64_t pixels);
// Of the layers that the tower has, those up to vision_feature_layer.
std::int64_t feature_layers(TowerFolder& in, std::int64_t layers, std::int64_t fallback);
// projector_hidden_act between two products.
void add_two_layers(TowerShape& tower, TowerFolder& in, const std::string& first, const std::string& second, std::int64_t inputs,
                    std::int64_t inner);
std::int64_t text_width(TowerFolder& in);
std::int32_t resampler_heads(std::int64_t width);
// TensorForm::order of Gemma 4's heads.
std::vector<std::int32_t> gemma_head_order(std::int32_t head_dim);

}  // namespace braid::model
