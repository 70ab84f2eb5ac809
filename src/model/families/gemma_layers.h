// What Gemma 3n and Gemma 4 have in common: windowed layers with angles of their own, inputs of each layer, and layers that read the keys and
// values of others.
#pragma once

#include "model/families/folder_decoder.h"
#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace braid::model {

// Names of tensors.
inline constexpr std::pair<std::string_view, std::string_view> kGemmaLayerNames[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
};

// Norms around both branches and of queries, keys and values, scores that are not scaled, GeGLU, the embedding's scale; windows as the file has
// them, or each `period`-th layer has none.
void bend_gemma(GgufKeys& keys, ModelShape& model, std::int32_t period);

// Angles of windowed layers: a second rotary table, of `rotated` values of a head.
void add_local_angles(GgufKeys& keys, ModelShape& model, std::int32_t rotated);

// Where the file has any ("embedding_length_per_layer_input").
void add_layer_inputs(GgufKeys& keys, ModelShape& model);

// The last layers ("attention.shared_kv_layers") read the keys and values of the last layer before them that has a window as they do, or none.
void share_keys_and_values(GgufKeys& keys, ModelShape& model);

// Keys of both, and the table of inputs with a row for each token: those that it lacks, of images and sounds, have the first one's.
void translate_gemma_layers(FolderReader& in, const FolderSize& size);

}  // namespace braid::model
