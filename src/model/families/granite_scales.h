// What Granite 3 and 4 have in common: scales of embeddings, scores, branches and logits, rotated pairs and optional biases.
#pragma once

#include "model/families/folder_reader.h"
#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

namespace braid::model {

void describe_granite_scales(GgufKeys& keys, ModelShape& model);
void translate_granite_scales(FolderReader& in);

}  // namespace braid::model
