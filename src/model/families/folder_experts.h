// Mixtures of experts in folders: their keys, and their tensors joined as a file has them.
#pragma once

#include "model/families/folder_decoder.h"
#include "model/model_shape.h"

#include <optional>
#include <string_view>

namespace braid::model {

// Keys of the number of experts, of how many a token takes, of their width, of how many see all tokens, and of the layers before them that
// have none. A configuration without experts sets none. `width`: what the configuration calls theirs.
void translate_expert_keys(FolderReader& in, FolderConfig::Names width = {"moe_intermediate_size"});

// llama.cpp asks for the width of the network of all rows beside the experts, which this build takes from its tensors.
void set_shared_width(FolderReader& in, const FolderSize& size);

// What a layer calls its experts: tensors "<layers>.<layer>.<module>.<expert>.<part>.weight".
struct ExpertNames {
  std::string_view layers = "model.layers";
  std::string_view module = "mlp.experts";
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
};

// One tensor of the matrices "<prefix><index><suffix>", index from 0 on; nothing where there is none. They have one shape and type.
std::optional<files::GgufTensor> join_matrices(FolderReader& in, std::string_view prefix, std::string_view suffix);

// Joins them; after the tensors have been named.
void join_experts(FolderReader& in, const FolderSize& size, const ExpertNames& names = {});

// Gives all layers' part [experts, 2 * width, inputs] to two, the first half of each expert's rows to `gate`; where `alternate` is set every
// second row.
void split_experts(FolderReader& in, std::string_view part, std::string_view gate, std::string_view up, bool alternate = false);

// Makes vectors of a part's matrices of one row.
void drop_dimension(FolderReader& in, std::string_view part);

// Whether a token's weights are divided by their sum ("norm_topk_prob"), their scale, and groups.
void translate_router(FolderReader& in, bool normalised);

// What a router makes of its scores. llama.cpp knows it of some families only by this key.
void set_scoring(FolderReader& in, RouterShape::Scoring scoring);

// The layer behind the others that predicts tokens further ahead gets the names that it has in files, and counts in `size`, where all that it
// has of its own is there. After name_tensors(). Otherwise drop_later_layers() takes it.
void place_prediction_layer(FolderReader& in, FolderSize& size);

// Drops the layers after the model's own, which predict tokens further ahead.
void drop_later_layers(FolderReader& in, const FolderSize& size);

}  // namespace braid::model
