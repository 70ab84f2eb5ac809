// Heads of the EAGLE-3 kind (Li et al. 2025, "EAGLE-3: Scaling up inference acceleration of large language models via training-time test"),
// as folders beside the model that they were trained for.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/model_shape.h"

#include <cstdint>
#include <vector>

namespace braid::model {

// A head reads, for each position, the residual stream of the model behind some of its layers, which `prediction.join` makes one row of, and
// the embedding of the token that came next. Its one layer attends to both side by side (LayerShape::reads_beside).
struct EagleHead {
  files::GgufFile file;
  // Without layers but that of `prediction`. Without a name of its input it reads the model's embedding.
  ModelShape shape;
  std::vector<std::int32_t> read_layers;  // behind so many layers of the model; of equal width
  std::vector<TokenId> tokens;            // by the head's own: the model's; empty: they are the same
  bool norms_residual = false;            // what the layer adds to is the row after its norm
};

// Whether the folder's config.json says so.
bool is_eagle_head(const files::HfFolder& folder);

// For that model. kBadFile, kUnsupported: it fits no such model, or is of a kind that this build lacks.
Result<EagleHead> read_eagle_head(const files::HfFolder& folder, const ModelShape& model);

}  // namespace braid::model
