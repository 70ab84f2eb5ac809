// What decoders with attention to latents (DeepSeek 2024) have in common, in files and in folders.
#pragma once

#include "model/families/folder_decoder.h"
#include "model/families/gguf_keys.h"
#include "model/families/latent_heads.h"
#include "model/model_shape.h"

namespace braid::model {

// A model of the Llama kind whose heads attend to latents, and whose rotated pairs are neighbours.
ModelShape latent_decoder(GgufKeys& keys);

struct LatentFolder {
  FolderSize size;
  LatentHeads heads;
};

// Sizes, positions and names; keys and values of heads are still made by one matrix, until part_latent_heads(). What has failed is in
// config.error.
LatentFolder translate_latent_decoder(FolderReader& in);
void part_latent_heads(FolderReader& in, const LatentHeads& heads);

}  // namespace braid::model
